// Finds pages by opcode, part of one, shape, chip, function or erratum.  pages.js, which the site's build writes, has the entries.
"use strict";

const PtxmmaFind = (() => {
  /** Words that say nothing: the namespace of the wrappers, the maker of all GPUs, articles, and what begins a question. */
  const IGNORED = new Set(
    ("ptxmma nvidia the a an of in to and is are how what which why when where who do does can i my it many much there from with for on by"
      + " error warning take takes add adds need needs use uses get have has hold holds support supports show explain list"
      + " largest smallest max maximum min minimum size limit limits range big vs versus difference between must be used").split(" "),
  );
  /** A title counts more than the other words of a page, a whole word more than its beginning. */
  const TITLE = [12, 6, 3], WORDS = [5, 2.5, 1];
  /** A word of the text: its score, and its part of a match. */
  const TEXT = 1.5, TEXT_MATCH = 0.75;
  /** An entry whose title, up to a colon, says nothing but the question is what was asked for. */
  const NOTHING_ELSE = 12;
  /** Pages come before their sections. */
  const PAGE = 1, TARGET = 2;
  /** A form of an instruction, where the question names nothing but types and shapes. */
  const FORM = 10;
  /** Errata, rules of the checker, members of classes, options of commands, and chapters for maintainers match by one word less than they have, the one that tells most. */
  const SIDELINES = /#erratum-|#ptxmma\.|^reference\/(rules\/|differences|evidence)|^(verify|corpus|peers|check_measured)\.|^commands\.html#/;
  /** One word that is all of such a title means another page first, where one has it: ``metadata`` is a rule, too. */
  const ASIDE = 0.4;
  const NOT_ACCEPTED = 0.6;
  const MOST = 12;

  const split = (text) => text.toLowerCase().replace(/c\+\+/g, "cpp").split(/[^a-z0-9]+/).filter(Boolean);
  /** A word without the ending of a plural or of a verb: what ``allocates`` shares with ``allocation`` and ``alloc``. */
  const stem = (word) => word.replace(/iz(?=[eia])/, "is").replace(/(?<=^[a-z]{3,})((?<=s|x|ch)es|(?<!s)s|e|ed|ers?|ing|ates?|ations?)$/, "");

  /**
   * The words of a question, each with its meanings: lists of words, the first of which is the word itself.
   * Names of several words, as CuTe has them, count as what they mean; ``64x128x16`` is m64n128k16, ``1688`` m16n8k8, and ``9.0a`` a target.
   */
  function wanted(query, {names, types}) {
    let text = query.toLowerCase().replace(/\^t\b/g, " transposed").replace(/^\s*using\s+\w+\s*=/, "")
      .replace(/^\s*(\d+)\.(\d)([af]?)\s*$/, "sm_$1$2$3")
      .replace(/(?<![a-z0-9])sm[_ ](\d+[af]?)(?![a-z0-9])/g, "sm$1")
      .replace(/shape\s*<\s*(\d+)\s*,\s*(\d+)\s*,\s*(\d+)\s*>/g, "$1x$2x$3")
      .replace(/(?<![a-z0-9])(?:(\d+)x(\d+)x(\d+)|(16|8)(8)(\d{1,3}))(?![a-z0-9])/g, "m$1$4n$2$5k$3$6");
    for (const name of Object.keys(names).filter((each) => each.includes("_")).sort((one, other) => other.length - one.length)) {
      text = text.replace(new RegExp(`(?<![a-z0-9])${name.replaceAll("_", "[-_. ]")}(?![a-z0-9])`), ` ${names[name][0]} `);
    }
    const found = split(text), telling = found.filter((word) => !IGNORED.has(word));
    const long = telling.filter((word) => word.length > 1);
    const words = [...new Set(long.length ? long : telling.length ? telling : found)];
    return words.map((word) => {
      const meanings = (names[word] ?? []).map(split);
      const isType = (each) => types.includes(each) || /\d/.test(each);
      const noun = !isType(word) && !(meanings.length && meanings.every((each) => each.every(isType)));
      return {meanings: [[word], ...meanings.filter(({length}) => length)], noun};
    });
  }

  function weight(word, among, [whole, start, inside]) {
    if (among.includes(word)) return whole;
    const root = stem(word);
    if (word.length > 1 && among.some((other) => other.startsWith(word) || (root.length > 2 && stem(other) === root))) return start;
    return word.length > 3 && among.some((other) => other.includes(word)) ? inside : 0;
  }

  /** A word that no entry has, in British spelling, or cut to the longest that one has: ``quantize`` is quantise, ``h100pcie`` h100. */
  function shortened(word, entries) {
    const known = entries.flatMap(({own, others}) => [...own, ...others]);
    if (entries.some(({text}) => text.has(stem(word)))) return word;
    const there = [word, word.replace(/iz(?=[eia])/, "is").replace("color", "colour")].find((each) => known.some((other) => other.startsWith(each) || (each.length > 2 && other.includes(each))));
    if (there) return there;
    const begun = known.filter((other) => other.length > 2 && word.startsWith(other));
    return begun.reduce((longest, other) => (other.length > longest.length ? other : longest), "") || word;
  }

  /**
   * The entries that answer a query, best first: [title, address]; the title of a section has its page's, too.  Entries are [title, address, words, words of the text], those of forms
   * with a spelling, and for each target that accepts some the words that these lack, too.
   * The vocabulary has people's names with their meanings in words of PTX, and the element types.
   * Bits of a descriptor and elements of a matrix are answered by the explorer.
   */
  function find(entries, query, vocabulary) {
    const bits = /^\s*(0x[0-9a-f]{1,16})\s*$/i.exec(query);
    if (bits) return [[`${bits[1]} as a matrix descriptor`, `explorer.html#v=memory&bits=${bits[1]}`]];
    const element = /\b([a-d]|metadata|scale-[ab])\s*\[(\d+)\]\s*\[(\d+)\]/i.exec(query);
    const rest = element ? query.replace(element[0], " ").replace(/\b(lane|thread|register)s?\b/gi, " ") : query;
    const best = ranking(entries, rest, vocabulary).slice(0, MOST);
    const pages = new Map(entries.map(([title, address]) => [address, title]));
    const answers = best.map(({title, address}) => [address.includes("#") ? `${title} \u00b7 ${pages.get(address.split("#")[0])}` : title, address]);
    if (!element) return answers;
    const [form] = ranking(entries.filter(([, , , , spelling]) => spelling), rest, vocabulary);
    const shown = `at=${element[1].toLowerCase()}:${element[2]},${element[3]}`;
    const title = `${element[0]}${form ? ` of ${form.title}` : ""} in the explorer`;
    return [[title, `explorer.html#${form ? `i=${form.spelling}&` : ""}${shown}`], ...answers];
  }

  /** The entries with most of the nouns, the best first; where there is no noun, those with most of the words. */
  function ranking(entries, query, vocabulary) {
    const known = entries.map(([title, address, more, text, spelling, lacking]) => {
      // The names of errata say whole sentences: their words weigh no more than those of a page.
      const own = address.includes("#erratum-") ? [] : split(title);
      const head = split(title.split(":")[0]);
      return {title, address, spelling, lacking, own, head, others: [...more.split(" "), ...(own.length ? [] : head)], text: new Set(text.split(" ").map(stem))};
    });
    const words = wanted(query, vocabulary);
    for (const word of words) if (word.meanings.length === 1) word.meanings = [[shortened(word.meanings[0][0], known)]];
    const said = new Set(words.flatMap(({meanings}) => meanings.flat()));
    // A meaning counts where an entry has all of its words, the word itself and its first meaning more than the others.
    const best = (meanings, {own, others, text}) => Math.max(...meanings.map((each, place) => {
      const weakest = Math.min(...each.map((word) => Math.max(weight(word, own, TITLE), weight(word, others, WORDS)) || (text.has(stem(word)) && TEXT)));
      return weakest && Math.max(weakest - Math.max(place - 1, 0) / 2, 0.5);
    }));
    const ranked = known.map((entry) => ({...entry, weights: words.map(({meanings}) => best(meanings, entry))}));
    // A word that few entries have tells more than one of many.
    const counts = words.map((_, place) => ranked.filter(({weights}) => weights[place]).length);
    const telling = counts.map((count) => Math.log(ranked.length / (count || 1)));
    // The name of a GPU says where, not what: only its target has it as a label, though texts may mention it.
    words.forEach((word, place) => {
      const floor = ranked.some(({weights}) => weights[place] > TEXT) ? TEXT : 0;
      word.what = ranked.some(({address, weights}) => weights[place] > floor && !address.includes("#target-"));
    });
    const nouns = words.some(({noun, what}) => noun && what), whats = words.some(({what}) => what);
    // A form that the named target does not accept, or not with these words, is not meant.
    const place = ranked.find(({address, weights}) => address.includes("#target-sm-") && words.every(({what}, at) => what || weights[at] > TEXT));
    const target = whats && !words.every(({what}) => what) && place && /\d+/.exec(place.address.split("#target-")[1])[0];
    const accepted = (lacking) => lacking.split("; ").map((part) => part.split(": ")).some(([numbers, lacks = ""]) => numbers.split(" ").includes(target)
      && words.every(({meanings, what}) => !what || meanings.slice(meanings.length > 1 ? 1 : 0).some((each) => !each.some((word) => lacks.split(" ").includes(word)))));
    const counted = words.map(({noun, what}) => (what || !whats) && (noun || !nouns));
    for (const entry of ranked) {
      const {address, head, weights} = entry;
      const parts = weights.map((each) => (each > TEXT ? 1 : each && TEXT_MATCH));
      const besides = head.filter((word) => !said.has(word)).length;
      const kind = address.includes("#target-") ? TARGET
        : address.includes("#") ? 0
        : entry.spelling && !nouns ? FORM : PAGE;
      const whole = !besides && weights.every((each) => each > TEXT);
      const aside = !SIDELINES.test(address) ? 0 : !whole ? 1 : words.length > 1 ? 0 : ASIDE;
      entry.matched = parts.reduce((sum, part, place) => sum + (counted[place] ? part * telling[place] : 0), 0) - aside * Math.max(...telling);
      if (target && entry.lacking && !accepted(entry.lacking)) entry.matched *= NOT_ACCEPTED;
      entry.score = weights.reduce((sum, each) => sum + each, 0)
        + (whole ? NOTHING_ELSE : -besides / 2) + kind;
    }
    const most = Math.max(0, ...ranked.map((entry) => entry.matched));
    return ranked.filter(({matched}) => matched > most / 2).sort((one, other) => other.matched - one.matched || other.score - one.score);
  }

  return {find};
})();

if (typeof module !== "undefined") module.exports = PtxmmaFind;

if (typeof document !== "undefined") {
  const root = document.documentElement.dataset.content_root || "./";

  const entries = (() => {
    let loading;
    return () => (loading ??= new Promise((done, failed) => {
      const script = document.createElement("script");
      script.src = `${root}_static/pages.js`;
      script.onload = () => done([PTXMMA_PAGES, PTXMMA_WORDS]);
      script.onerror = failed;
      document.head.append(script);
    }));
  })();

  // What Sphinx shows of a result, it fetches: browsers forbid that to pages without a server.
  if (location.protocol === "file:" && typeof DOCUMENTATION_OPTIONS !== "undefined") DOCUMENTATION_OPTIONS.SHOW_SEARCH_SUMMARY = false;

  const list = (answers) => {
    const items = document.createElement("ul");
    items.className = "finder";
    for (const [title, address] of answers) {
      const link = document.createElement("a");
      link.href = root + address;
      link.textContent = title;
      const item = document.createElement("li");
      item.append(link);
      items.append(item);
    }
    return items;
  };

  document.addEventListener("DOMContentLoaded", () => {
    const query = new URLSearchParams(location.search).get("q");
    const results = document.getElementById("search-results");
    if (results && query) {
      entries().then(([all, words]) => {
        const answers = PtxmmaFind.find(all, query, words);
        if (answers.length) results.before(Object.assign(document.createElement("h1"), {textContent: "Best matches"}), list(answers));
      });
    }
    const box = document.querySelector(".sidebar-search");
    const form = box?.closest("form");
    if (!form) return;
    let shown;
    const show = async () => {
      const [all, words] = await entries();
      shown?.remove();
      const answers = box.value.trim() ? PtxmmaFind.find(all, box.value, words) : [];
      if (answers.length) form.after((shown = list(answers)));
    };
    box.setAttribute("autocomplete", "off");
    box.addEventListener("input", show);
  });
}
