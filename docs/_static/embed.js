// A picture of a layout becomes the explorer's drawing of its matrix when it is clicked; without this script it is a link to the explorer.
"use strict";

document.addEventListener("click", (event) => {
  const link = event.target.closest("figure.picture a[href*='explorer.html#i=']");
  const operand = /^Layout of (\S+)/.exec(link?.querySelector("img")?.alt ?? "");
  if (!operand || link.href.includes("&v=") || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  const frame = document.createElement("iframe");
  frame.src = `${link.href}&embed=${operand[1]}`;
  frame.title = operand[0];
  frame.className = "embedded";
  link.replaceWith(frame);
});
