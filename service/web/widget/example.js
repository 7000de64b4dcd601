// The example on the widget's page: shows the markup with this service's URL, and every event.

const markup = document.getElementById("markup");
markup.textContent = markup.textContent.replace("/widget.js", new URL("widget.js", document.baseURI).href);

document.addEventListener("choose", ({ detail }) => {
  document.getElementById("chosen").textContent = JSON.stringify(detail, null, 2);
});
