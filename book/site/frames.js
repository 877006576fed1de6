// An explorer in a page is dark or light as the page is.
function followTheme() {
  const theme = `&theme=${document.documentElement.dataset.theme}`;
  for (const frame of document.querySelectorAll(".explorer iframe"))
    frame.src = frame.src.replace(/(&theme=\w+)?$/, theme);
}
addEventListener("DOMContentLoaded", followTheme);
new MutationObserver(followTheme).observe(document.documentElement, {attributeFilter: ["data-theme"]});
