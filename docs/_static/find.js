// Finds pages by opcode, part of one, shape, chip, function or erratum.  pages.js, which the site's build writes, has the entries.
"use strict";

const PtxmmaFind = (() => {
  /** Words that say nothing: the namespace of the wrappers, and articles. */
  const IGNORED = new Set(["ptxmma", "the", "a", "an", "of", "in", "to", "and", "is", "how", "what", "which", "do", "i", "from"]);
  /** A title counts more than the other words of a page, a whole word more than its beginning. */
  const TITLE = [12, 6, 3], WORDS = [5, 2.5, 1];
  /** An entry whose title, up to a colon, says nothing but the question is what was asked for. */
  const NOTHING_ELSE = 12;
  /** Pages come before their sections, and what they explain before the functions of the Python library. */
  const PAGE = 1, MEMBER = -9;
  const MOST = 12;

  const split = (text) => text.toLowerCase().split(/[^a-z0-9]+/).filter(Boolean);

  function wanted(query) {
    const words = split(query);
    const telling = words.filter((word) => !IGNORED.has(word));
    return [...new Set(telling.length ? telling : words)];
  }

  function weight(word, among, [whole, start, inside]) {
    if (among.includes(word)) return whole;
    if (word.length > 1 && among.some((other) => other.startsWith(word))) return start;
    return word.length > 2 && among.some((other) => other.includes(word)) ? inside : 0;
  }

  /**
   * The entries that answer a query, best first: [title, address].  Entries are [title, address, words], those of forms with a spelling, too.
   * Bits of a descriptor and elements of a matrix are answered by the explorer.
   */
  function find(entries, query) {
    const bits = /^\s*(0x[0-9a-f]{1,16})\s*$/i.exec(query);
    if (bits) return [[`${bits[1]} as a matrix descriptor`, `explorer.html#v=memory&bits=${bits[1]}`]];
    const element = /\b([a-d]|metadata|scale-[ab])\s*\[(\d+)\]\s*\[(\d+)\]/i.exec(query);
    const best = ranking(entries, element ? query.replace(element[0], " ") : query).slice(0, MOST);
    const answers = best.map(({title, address}) => [title, address]);
    if (!element) return answers;
    const form = best.find(({spelling}) => spelling);
    const shown = `at=${element[1].toLowerCase()}:${element[2]},${element[3]}`;
    const title = `${element[0]}${form ? ` of ${form.title}` : ""} in the explorer`;
    return [[title, `explorer.html#${form ? `i=${form.spelling}&` : ""}${shown}`], ...answers];
  }

  /** The entries with most of the words, the best first. */
  function ranking(entries, query) {
    const words = wanted(query);
    const ranked = [];
    for (const [title, address, more, spelling] of entries) {
      // The names of errata say whole sentences: their words weigh no more than those of a page.
      const own = address.includes("#erratum-") ? [] : split(title);
      const head = split(title.split(":")[0]), others = [...more.split(" "), ...(own.length ? [] : head)];
      const weights = words.map((word) => Math.max(weight(word, own, TITLE), weight(word, others, WORDS)));
      const matched = weights.filter(Boolean).length;
      const besides = head.filter((word) => !words.includes(word)).length;
      const kind = address.includes("#ptxmma.") ? MEMBER : address.includes("#") ? 0 : PAGE;
      const score = weights.reduce((sum, each) => sum + each, 0) + (besides ? -besides / 2 : NOTHING_ELSE) + kind;
      if (matched) ranked.push({title, address, spelling, matched, score});
    }
    const most = Math.max(0, ...ranked.map((entry) => entry.matched));
    return ranked.filter((entry) => entry.matched === most).sort((one, other) => other.score - one.score);
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
      script.onload = () => done(PTXMMA_PAGES);
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
      entries().then((all) => {
        const answers = PtxmmaFind.find(all, query);
        if (answers.length) results.before(Object.assign(document.createElement("h1"), {textContent: "Best matches"}), list(answers));
      });
    }
    const box = document.querySelector(".sidebar-search");
    const form = box?.closest("form");
    if (!form) return;
    let shown;
    const show = async () => {
      const all = await entries();
      shown?.remove();
      const answers = box.value.trim() ? PtxmmaFind.find(all, box.value) : [];
      if (answers.length) form.after((shown = list(answers)));
    };
    box.setAttribute("autocomplete", "off");
    box.addEventListener("input", show);
  });
}
