// Sorting and filtering, for those who run scripts: without them the page has everything too.
"use strict";
(() => {
  const table = document.querySelector("table");
  const controls = document.querySelector(".dp-controls");
  if (!table || !controls) return;
  const body = table.tBodies[0];
  const rows = [...body.rows];
  const [words, status] = controls.querySelectorAll("input, select");
  const count = controls.querySelector("output");
  const of = (row) => document.getElementById(row.dataset.claim).parentElement;

  function filter() {
    const wanted = words.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const row of rows) {
      const text = row.textContent.toLowerCase();
      const fits = (!status.value || row.dataset.status === status.value)
        && wanted.every((word) => text.includes(word));
      row.hidden = of(row).hidden = !fits;
      shown += fits;
    }
    count.textContent = `${shown} of ${rows.length} shown`;
    for (const section of document.querySelectorAll("main > section"))
      section.hidden = !section.querySelector("details:not([hidden])");
  }

  function sort(head) {
    const up = head.getAttribute("aria-sort") !== "ascending";
    for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", up ? "ascending" : "descending");
    const key = (row) => {
      const cell = row.cells[head.cellIndex];
      return "value" in cell.dataset ? Number(cell.dataset.value) : cell.textContent;
    };
    const compare = (a, b) => (typeof a === "number" ? a - b : a.localeCompare(b));
    const sorted = [...rows].sort((a, b) => compare(key(a), key(b)) * (up ? 1 : -1));
    body.append(...sorted);
  }

  function reveal() {
    const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    const details = target && target.closest("details");
    if (!details) return;
    details.open = true;
    details.querySelector("summary").focus({ preventScroll: true });
    details.scrollIntoView();
  }

  for (const head of table.tHead.rows[0].cells) {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    button.addEventListener("click", () => sort(head));
    head.append(button);
  }
  controls.hidden = false;
  words.addEventListener("input", filter);
  status.addEventListener("change", filter);
  window.addEventListener("hashchange", reveal);
  for (const link of body.querySelectorAll("a"))
    link.addEventListener("click", (event) => {
      if (link.hash !== location.hash) return;
      event.preventDefault(); // nothing changes, so nobody would be told
      reveal();
    });
  filter();
  reveal();
})();
