"""Faults of threads that execute an instruction, of addresses, masks and registers that they name, and of paths through a kernel."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

#: Puts a fault into the text of a module; None where it has no place.
_Put = Callable[[bytes], bytes | None]
_ADDRESS = re.compile(rb"(\[\s*%[\w$]+)(?:\s*\+\s*(\d+))?\s*(?=[\],])")
_ALIGNED = re.compile(rb"\b(?:wgmma|tcgen05|setmaxnreg)\.[\w.:]*aligned[\w.:]*[^;]*;")
_PAIRED = re.compile(rb"\btcgen05\.alloc\.cta_group::2[^;]*;")
_ELECT = re.compile(rb"elect\.sync\s+([\w$%]+)\|(%?\w+)[^;]*;")
_NUMBER = re.compile(rb"(setmaxnreg\.(?:inc|dec)[\w.]*\s+)(\d+)")
_THREADS, _EXACTLY = (re.compile(rb"\.(?:" + word + rb")ntid\s+(\d+)") for word in (rb"req|max", rb"req"))
_ROW = re.compile(rb"ldmatrix[^;]*\[\s*(%\w+)")
_MASK = re.compile(rb"(multicast::cluster[^;]*\]\s*,\s*)[%\w]+(?=\s*[,;])")
_PARAMETER = re.compile(rb"\.param\s[^,()]*?([\w$]+)\s*(?:\[\d+\]\s*)?[,)]")
_ALLOC, _RELINQUISH, _FREE, _LOAD = (
    re.compile(rb"(?:@!?%\w+\s+)?tcgen05\." + word + rb"[^;]*;") for word in (b"alloc", b"relinquish", b"dealloc", b"ld\\.")
)
_WAIT, _MEETING = re.compile(rb"mbarrier\.(?:try|test)_wait"), re.compile(rb"barrier\.cluster\.(?:arrive|wait)[^;]*;")
_REACH = b"{ .reg .b32 here, there; mov.u32 here, 0; mapa.shared::cluster.u32 there, here, 1; st.shared::cluster.b32 [there], here; }\n"
_ARRIVAL = re.compile(rb"mbarrier\.arrive[\w.:]*\.shared::cluster[^;]*;|tcgen05\.commit[\w.:]*\.multicast[^;]*;")
_WHOLE = re.compile(rb"(\bbar(?:rier)?(?:\.cta)?\.sync(?:\.aligned)?\s+\d+)\s*;")
_GROUP_WAIT, _TOLD = (
    re.compile(rb"cp\.async\.bulk\.wait_group(?:\.read)?\s+(\d+)\s*;"),
    b"cp.async.bulk.wait_group.read %b; fence.acq_rel.gpu;",
)
_RANKS = re.compile(rb"%(?:cluster_ctarank|(?:cluster_)?ctaid\.x)")
_MET = re.compile(rb"(?:@\S+\s+)?\b(?:bar(?!\.warp)|barrier)\.[^;]*;")
_PRODUCT, _COMMIT = re.compile(rb"tcgen05\.mma[^;]*;"), re.compile(rb"(?:@\S+\s+)?tcgen05\.commit[^;]*;")
_END = re.compile(rb"\Z")
_BARRIER = re.compile(rb"\b(?:bar\.sync|barrier\.sync|barrier\.cta\.sync)[^;]*;")
_PROXY_FENCE = re.compile(rb"(?:@\S+\s+)?fence\.proxy\.async(?!::generic)[^;]*;")
_STORED, _SENT = re.compile(rb"stmatrix[^;]*;"), re.compile(rb"(?:@\S+\s+)?cp\.(?:reduce\.)?async\.bulk[^;]*bulk_group")
_COLUMNS = re.compile(rb"(tcgen05\.(?:alloc|dealloc)[^;]*,\s*)(\d+)(?=\s*;)")
_PUBLISH, _ACQUIRE = (
    re.compile(rb"(?:@\S+\s+)?" + word + rb"[^;]*;")
    for word in (rb"(?:tensormap\.cp_fenceproxy|fence\.proxy\.tensormap::generic\.release)", rb"fence\.proxy\.tensormap::generic\.acquire")
)
_COPIED = re.compile(rb"cp\.async\.wait_(?:group|all)[^;]*;")
_BULK = rb"(?:@\S+\s+)?cp\.async\.bulk\."
_PRODUCTS = re.compile(rb"\{\s*\.reg[^{}]*tcgen05\.mma[^;{}]*(?:\{[^{}]*\}[^;{}]*)?;\s*\}|(?:@\S+\s+)?tcgen05\.mma[^;]*;")
#: Bytes before an instruction in which its predicate is, and after a commit in which a branch past it goes on.
_NEAR = 60


#: The register from which a bulk copy takes its size, and the one that says what an mbarrier expects.
_SIZED = re.compile(rb"cp\.async\.bulk\.shared[\w.:]*\s+\[[^;\]]*\],\s*\[[^;\]]*\],\s*(%\w+),")
_EXPECTED = re.compile(rb"(mbarrier\.[\w.:]*expect_tx[\w.:]*\s[^;]*,\s*)(%\w+)\s*;")


class TextFault(NamedTuple):
    """A kind of fault that the text of a module alone has: in words, the rules of which it breaks one, and the change."""

    name: str
    rule: str
    put: _Put


def _by_first(pattern: re.Pattern[bytes], register: bytes) -> _Put:
    """The fault that only the thread, or thread block, of number 0 executes an instruction that has no predicate."""

    def put(text: bytes) -> bytes | None:
        for match in pattern.finditer(text):
            if text[max(0, match.start() - _NEAR) : match.start()].rstrip().endswith((b";", b"}", b":", b"{")):
                first = b"{ .reg .pred first; .reg .b32 own; mov.u32 own, %b; setp.eq.u32 first, own, 0; @first " % register
                return text[: match.start()] + first + match[0] + b" }" + text[match.end() :]
        return None

    return put


def _all_elected(text: bytes) -> bytes | None:
    """Each ``elect.sync`` is a comparison that holds in all threads."""
    if not _ELECT.search(text):
        return None
    return _ELECT.sub(
        lambda match: (b"" if match[1] == b"_" else b"mov.b32 %b, 0; " % match[1]) + b"setp.eq.u32 %b, 0, 0;" % match[2], text
    )


def _moved(opcode: bytes, distance: int) -> _Put:
    """The fault that the first address of an instruction, if it is in a register, is too large by some bytes."""
    pattern = re.compile(rb"(?<![\w$%%.])%b[\w.:]*\s+[^;\[]*(?=\[)" % opcode)

    def put(text: bytes) -> bytes | None:
        addresses = (_ADDRESS.match(text, match.end()) for match in pattern.finditer(text))
        first = next((address for address in addresses if address is not None), None)
        if first is None:
            return None
        return text[: first.start()] + b"%b+%d" % (first[1], int(first[2] or 0) + distance) + text[first.end() :]

    return put


def _too_many_registers(text: bytes) -> bytes | None:
    """All warps of a kernel with more than 256 threads ask for 240 registers."""
    threads = _THREADS.search(text)
    return _NUMBER.sub(rb"\g<1>240", text) if threads and int(threads[1]) > 256 and b"setmaxnreg.inc" in text else None


def _unswizzled(text: bytes) -> bytes | None:
    """No address of ``ldmatrix`` is computed with a final xor of some bits."""
    changed = text
    for base in {match[1] for match in _ROW.finditer(text)}:
        mixed = re.search(rb"xor\.b32\s+%b\s*,\s*(%%\w+)\s*,\s*(%%\w+)\s*;" % re.escape(base), changed)
        if mixed is not None:
            kept = mixed[1] if re.search(rb"and\.b32\s+%b\s*,[^;]*\d\s*;" % re.escape(mixed[2]), text) else mixed[2]
            changed = changed[: mixed.start()] + b"mov.b32 %b, %b;" % (base, kept) + changed[mixed.end() :]
    return changed


def _replaced(pattern: bytes, by: bytes, count: int = 0) -> _Put:
    return lambda text: re.sub(pattern, by, text, count=count) if re.search(pattern, text) else None


def _inserted(after: re.Pattern[bytes], make: Callable[[bytes], bytes | None]) -> _Put:
    """The fault that a statement, made of a module's text, is executed after another if a parameter is 0."""

    def put(text: bytes) -> bytes | None:
        place = after.search(text)
        if place is None:
            return None
        head = text[text.rfind(b".entry", 0, place.start()) : place.start()]
        parameter, statement = _PARAMETER.search(head), make(text)
        if parameter is None or statement is None:
            return None
        test = b"{ .reg .pred none; .reg .b32 first; ld.param.u32 first, [%b]; setp.eq.u32 none, first, 0; @none " % parameter[1]
        return text[: place.end()] + test + statement + b" }" + text[place.end() :]

    return put


def _statement(pattern: re.Pattern[bytes]) -> Callable[[bytes], bytes | None]:
    """An instruction of a text without its predicate."""

    def find(text: bytes) -> bytes | None:
        match = pattern.search(text)
        return match[0][match[0].find(b"tcgen05") :] if match else None

    return find


def _freed_before_the_last_load(text: bytes) -> bytes | None:
    """The instruction that frees tensor memory comes before the last load."""
    freed, loads = _FREE.search(text), [*_LOAD.finditer(text)]
    if freed is None or not loads or loads[-1].start() > freed.start():
        return None
    place = loads[-1].start()
    return text[:place] + freed[0] + b"\n" + text[place : freed.start()] + text[freed.end() :]


def _without_first_meeting(text: bytes) -> bytes | None:
    """Barriers of the thread block in place of the cluster's before the first wait for an mbarrier, in kernels that reach others."""
    wait = _WAIT.search(text) if b"mapa." in text or b"multicast::cluster" in text else None
    return _MEETING.sub(b"bar.sync 0;", text[: wait.start()]) + text[wait.start() :] if wait else None


def _smaller_barriers(text: bytes) -> bytes | None:
    """The barriers between ``mbarrier.init`` and the first wait after it wait for 64 threads, if no others are there."""
    threads, begin = _EXACTLY.search(text), text.find(b"mbarrier.init")
    wait = _WAIT.search(text, begin) if threads and int(threads[1]) > 64 and begin >= 0 else None
    between = text[begin : wait.start()] if wait else b""
    smaller = _WHOLE.sub(rb"\1, 64;", between)
    if wait is None or smaller == between or len(_MET.findall(between)) > len(_WHOLE.findall(between)):
        return None
    return text[:begin] + smaller + text[wait.start() :]


def _without_last_meeting(text: bytes) -> bytes | None:
    """No barrier of the cluster after the last arrival in another thread block."""
    last = max((match.end() for match in _ARRIVAL.finditer(text)), default=-1)
    return text[:last] + _MEETING.sub(b"", text[last:]) if last >= 0 and _MEETING.search(text, last) else None


def _own_window(text: bytes) -> bytes | None:
    """Arrivals and stores by an address of ``mapa`` are without ``::cluster``."""
    there = rb"(mbarrier\.arrive|st\.(?!async))([\w.:]*)\.shared::cluster([\w.:]*\s[^;]*;)"
    return _replaced(there, rb"\1\2.shared\3")(text.replace(b".cluster.shared::cluster", b".shared::cluster")) if b"mapa" in text else None


def _reaching_at_the_end(text: bytes) -> bytes | None:
    """A store to another thread block is the last thing that a kernel with barriers of the cluster does."""
    end = text.rfind(b"ret;")
    return text[:end] + _REACH + text[end:] if end >= 0 and b"barrier.cluster.wait" in text else None


def _told_early(text: bytes) -> bytes | None:
    """The last wait for groups of bulk copies has .read, and a fence of the device follows."""
    waits = [*_GROUP_WAIT.finditer(text)]
    last = waits[-1] if waits and b"bulk_group" in text[: waits[-1].start()] else None
    return text[: last.start()] + _TOLD % last[1] + text[last.end() :] if last else None


def _other_bytes(text: bytes) -> bytes | None:
    """An mbarrier expects 16 bytes, in place of the bytes in the register from which a copy takes its size."""
    sizes = {match[1] for match in _SIZED.finditer(text)}
    expected = next((match for match in _EXPECTED.finditer(text) if match[2] in sizes), None)
    return None if expected is None else text[: expected.start(2)] + b"16" + text[expected.end(2) :]


def _without_barriers(text: bytes) -> bytes | None:
    """No barrier after the first wait for ``cp.async``, in modules that read rows and have no bulk copies."""
    wait = _COPIED.search(text) if b"ldmatrix" in text and b"cp.async.bulk" not in text else None
    return text[: wait.end()] + _MET.sub(b"", text[wait.end() :]) if wait else None


def _between(begin: re.Pattern[bytes], end: re.Pattern[bytes], gone: re.Pattern[bytes]) -> _Put:
    """The fault that some instructions are missing between the last of one kind and the first of another after it, or the end."""

    def put(text: bytes) -> bytes | None:
        starts = [*begin.finditer(text)]
        place = starts[-1].end() if starts else len(text)
        match = end.search(text, place)
        stop = match.start() if match else len(text)
        return text[:place] + gone.sub(b"", text[place:stop]) + text[stop:] if gone.search(text, place, stop) else None

    return put


def _unfenced(text: bytes) -> bytes | None:
    """No fence between the proxies, in modules that compute with matrices."""
    return _PROXY_FENCE.sub(b"", text) if b"mma" in text and _PROXY_FENCE.search(text) else None


def _fenced_late(text: bytes) -> bytes | None:
    """The last fence between the proxies between ``stmatrix`` and a bulk copy comes after the next barrier of the thread block."""
    sent, stored = _SENT.search(text), _STORED.search(text)
    if sent is None or stored is None:
        return None
    fence = next(reversed([*_PROXY_FENCE.finditer(text, stored.start(), sent.start())]), None)
    barrier = _BARRIER.search(text, fence.end(), sent.start()) if fence else None
    if fence is None or barrier is None:
        return None
    return text[: fence.start()] + text[fence.end() : barrier.end()] + b"\n" + fence[0] + text[barrier.end() :]


def _without_last(pattern: re.Pattern[bytes]) -> _Put:
    """The fault that the last instruction of a kind is missing, in kernels that change tensor maps, publish and acquire them."""

    def put(text: bytes) -> bytes | None:
        has = b"tensormap.replace" in text and _PUBLISH.search(text) and _ACQUIRE.search(text)
        last = next(reversed([*pattern.finditer(text)]), None) if has else None
        return text[: last.start()] + text[last.end() :] if last else None

    return put


def _halved(text: bytes) -> bytes | None:
    """Half the columns in all that allocates and frees them, in kernels of which one instruction allocates."""
    if len(_ALLOC.findall(text)) != 1:
        return None
    return _COLUMNS.sub(lambda match: match[1] + b"%d" % max(int(match[2]) // 2, 32), text)


def _met_at_the_end(text: bytes) -> bytes | None:
    """The barrier between the last load from tensor memory and the instruction that frees it comes at the end."""
    put = _between(_LOAD, _FREE, _MET)(text)
    end = put.rfind(b"ret;") if put is not None else -1
    return put[:end] + b"bar.sync 0; " + put[end:] if put is not None and end >= 0 else None


def _committed_first(text: bytes) -> bytes | None:
    """The products before the first commit come after it, in the same thread."""
    commit = _COMMIT.search(text)
    products = [*_PRODUCTS.finditer(text, 0, commit.start())] if commit else []
    if commit is None or not products:
        return None
    moved = b"\n".join(each[0] for each in products)
    return _PRODUCTS.sub(b"", text[: commit.start()]) + commit[0] + b"\n" + moved + text[commit.end() :]


def _without_groups(text: bytes) -> bytes | None:
    """No groups of products, in modules in which threads arrive on mbarriers without bytes."""
    return _replaced(rb"wgmma\.commit_group[^;]*;", b"")(text) if re.search(rb"mbarrier\.arrive\.(?!expect)", text) else None


def _all_first(text: bytes) -> bytes | None:
    """Each thread block of a pair takes itself for the first, in kernels with products of pairs."""
    return _RANKS.sub(b"0", text) if b"tcgen05.mma.cta_group::2" in text else None


FAULTS: Sequence[TextFault] = (
    TextFault("an instruction with .aligned in thread 0 alone", "partial-warp", _by_first(_ALIGNED, b"%tid.x")),
    TextFault("every thread takes itself for the one that elect.sync elects", "repeated-issue", _all_elected),
    TextFault("tcgen05.alloc.cta_group::2 in thread block 0 alone", "lone-cta", _by_first(_PAIRED, b"%cluster_ctarank")),
    TextFault("setmaxnreg of 240 in all warps of more than 256 threads", "register-pool", _too_many_registers),
    TextFault("no setmaxnreg.dec", "register-pool", _replaced(rb"setmaxnreg\.dec[^;]*;", b"")),
    TextFault("an mbarrier 4 bytes further on", "alignment", _moved(b"mbarrier", 4)),
    TextFault("a row of ldmatrix 8 bytes further on", "alignment", _moved(b"ldmatrix", 8)),
    TextFault("a row of stmatrix 8 bytes further on", "alignment", _moved(b"stmatrix", 8)),
    TextFault("the destination of cp.async.cg 8 bytes further on", "alignment", _moved(rb"cp\.async\.cg", 8)),
    TextFault("the destination of a bulk copy 8 bytes further on", "alignment", _moved(rb"cp\.async\.bulk(?:\.tensor\.\dd)?\.shared", 8)),
    TextFault("no swizzle in the rows of ldmatrix", "bank-conflict", _unswizzled),
    TextFault("16 bytes in place of those of a copy", "wrong-byte-count", _other_bytes),
    TextFault("a multicast mask of 0", "outside-cluster", lambda text: _MASK.sub(rb"\g<1>0", text, count=1)),
    TextFault(
        "fence.proxy.async.global in place of .shared::cta",
        "missing-proxy-fence",
        _replaced(rb"fence\.proxy\.async\.shared::cta", b"fence.proxy.async.global"),
    ),
    TextFault("tcgen05.dealloc before the last load", "tensor-memory-freed", _freed_before_the_last_load),
    TextFault("ret after tcgen05.alloc if a parameter is 0", "tensor-memory-kept", _inserted(_ALLOC, lambda _: b"ret;")),
    TextFault("tcgen05.alloc after relinquish if a parameter is 0", "relinquished-permit", _inserted(_RELINQUISH, _statement(_ALLOC))),
    TextFault("no cp.async.bulk.commit_group", "unfinished-copy", _replaced(_BULK + rb"commit_group[^;]*;", b"")),
    TextFault("no cp.async.bulk.wait_group", "unfinished-copy", _replaced(_BULK + rb"wait_group[^;]*;", b"")),
    TextFault("a fence of the device after the last cp.async.bulk.wait_group, with .read", "incomplete-result", _told_early),
    TextFault("barriers of the thread block in place of the first of the cluster", "absent-block", _without_first_meeting),
    TextFault("no tcgen05.fence::before_thread_sync", "missing-thread-fence", _replaced(rb"tcgen05\.fence::before_thread_sync\s*;", b"")),
    TextFault("barriers of 64 threads after mbarrier.init", "unpublished-barrier", _smaller_barriers),
    TextFault("no barrier of the cluster after the last arrival in another block", "absent-block", _without_last_meeting),
    TextFault("an address of mapa without ::cluster", "state-space", _own_window),
    TextFault("a store to another thread block at the end", "absent-block", _reaching_at_the_end),
    TextFault("no barrier between the last load and tcgen05.dealloc", "freed-in-use", _between(_LOAD, _FREE, _MET)),
    TextFault("no tcgen05.commit after the last product", "untracked-product unmatched-mbarrier", _between(_PRODUCT, _END, _COMMIT)),
    TextFault("no wgmma.wait_group", "refilled-stage", _replaced(rb"wgmma\.wait_group[^;]*;", b"")),
    TextFault("no wgmma.commit_group before arrivals", "refilled-stage", _without_groups),
    TextFault("the products of a stage after the tcgen05.commit that tracks them", "refilled-stage untracked-product", _committed_first),
    TextFault("the barrier before tcgen05.dealloc at the end", "freed-in-use", _met_at_the_end),
    TextFault("no barrier after the first wait for cp.async", "unwaited-copy", _without_barriers),
    TextFault("no fence.proxy.async", "missing-proxy-fence", _unfenced),
    TextFault("fence.proxy.async after the barrier between stmatrix and a bulk copy", "missing-proxy-fence", _fenced_late),
    TextFault("a tensor map is not published", "stale-tensor-map", _without_last(_PUBLISH)),
    TextFault("a tensor map is not acquired", "stale-tensor-map", _without_last(_ACQUIRE)),
    TextFault("half the columns of tensor memory", "tensor-memory-bounds", _halved),
    TextFault("every thread block takes itself for the first of the cluster", "repeated-issue", _all_first),
)
