// Shows one frame with those above it over the whole width, and says what a frame is.
(function () {
  var svg = document.documentElement, frames = [], told;
  function number(e, name) { return parseFloat(e.getAttribute(name)); }
  function label(f, width) {
    if (!f.text) return;
    var fits = Math.floor((width - 6) / 6.6);
    f.text.textContent = fits < 3 ? "" : f.name.length > fits ? f.name.slice(0, fits - 2) + ".." : f.name;
  }
  function show(of) {
    var scale = 1180 / of.width;
    frames.forEach(function (f) {
      var below = f.depth < of.depth && f.x <= of.x + 0.01 && f.x + f.width >= of.x + of.width - 0.01;
      var above = f.depth >= of.depth && f.x >= of.x - 0.01 && f.x + f.width <= of.x + of.width + 0.01;
      f.g.style.display = below || above ? "" : "none";
      f.g.setAttribute("class", below && f !== of ? "f dim" : "f");
      var x = below ? 10 : 10 + (f.x - of.x) * scale, width = below ? 1180 : f.width * scale;
      f.rect.setAttribute("x", x);
      f.rect.setAttribute("width", Math.max(width, 0));
      if (f.text) f.text.setAttribute("x", x + 3);
      label(f, width);
    });
  }
  window.addEventListener("load", function () {
    told = document.getElementById("told");
    Array.prototype.forEach.call(document.querySelectorAll("g.f"), function (g) {
      var rect = g.querySelector("rect"), title = g.querySelector("title").textContent, text = g.querySelector("text");
      if (!text) {
        text = document.createElementNS("http://www.w3.org/2000/svg", "text");
        text.setAttribute("y", number(rect, "y") + 11);
        g.appendChild(text);
      }
      var f = { g: g, rect: rect, text: text, depth: number(g, "data-d"), x: number(rect, "x"), width: number(rect, "width"),
        name: title.replace(/: [\d,' ]* instructions, [^,]*, [^,]* in itself$/, "") };
      frames.push(f);
      g.addEventListener("click", function () { show(f); });
      g.addEventListener("mouseover", function () { told.textContent = title; });
    });
  });
})();
