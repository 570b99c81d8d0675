const list = document.getElementById("list"), find = document.getElementById("find"), order = document.getElementById("order");
const cards = [...list.children];
const by = {
  coherence: (a, b) => b.dataset.coherence - a.dataset.coherence,
  active: (a, b) => b.dataset.active - a.dataset.active,
  rare: (a, b) => a.dataset.active - b.dataset.active,
  number: (a, b) => a.dataset.number - b.dataset.number,
};
function show() {
  const wanted = find.value.trim().toLowerCase();
  let count = 0;
  for (const card of cards) {
    card.hidden = wanted !== "" && !` ${card.dataset.words}`.includes(` ${wanted}`);
    count += !card.hidden;
  }
  document.getElementById("count").textContent = `${count} of ${cards.length} properties`;
}
find.addEventListener("input", show);
order.addEventListener("change", () => { cards.sort(by[order.value]); list.append(...cards); });
show();
