"use strict";

// Opens a page in one browser after the other look, and writes a line of JSON about each: what was
// asked for, said and shown.

const path = require("path");
const { pathToFileURL } = require("url");

const config = JSON.parse(process.argv[2]);
const { chromium } = require(config.playwright);

const looks = [
    { name: "light", options: { colorScheme: "light", viewport: { width: 1280, height: 900 } } },
    { name: "dark", options: { colorScheme: "dark", viewport: { width: 1280, height: 900 } } },
    { name: "narrow", options: { colorScheme: "light", viewport: { width: 390, height: 800 } } },
    { name: "print", options: { colorScheme: "light", viewport: { width: 1000, height: 900 } }, media: "print" },
];

// survey runs in the page: what is there, how well it can be read, and whether it fits.
function survey() {
    // The color functions of a computed style are rgb() and rgba() here.
    const parts = (color) => (color.match(/[\d.]+/g) || []).map(Number);
    const background = (e) => {
        for (; e; e = e.parentElement) {
            const c = parts(getComputedStyle(e).backgroundColor);
            if (c.length === 3 || c[3] > 0) {
                return c;
            }
        }
        return [255, 255, 255];
    };
    const luminance = (c) => {
        const [r, g, b] = c.slice(0, 3).map((v) => (v / 255 <= 0.04045 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4));
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    const faint = new Set();
    let texts = 0;
    const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    for (let n = walk.nextNode(); n; n = walk.nextNode()) {
        const e = n.parentElement;
        if (!n.data.trim() || !e.checkVisibility() || e.closest("svg title")) {
            continue;
        }
        texts++;
        const style = getComputedStyle(e);
        const [a, b] = [parts(e.closest("svg") ? style.fill : style.color), background(e)].map(luminance);
        if ((Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05) < 4.5) {
            faint.add(`${e.tagName}.${e.className.baseVal ?? e.className} ${n.data.trim().slice(0, 40)}`);
        }
    }
    const unnamed = [...document.querySelectorAll("svg:not([aria-hidden])")].filter((s) => !document.getElementById(s.getAttribute("aria-labelledby"))?.textContent);
    const headings = [...document.querySelectorAll("h1, h2, h3")].map((h) => Number(h.tagName[1]));
    return {
        title: document.title,
        background: getComputedStyle(document.body).backgroundColor,
        scripts: document.scripts.length,
        foreign: document.querySelectorAll("img, iframe, object, embed, link, form, b[title]").length,
        texts,
        faint: [...faint],
        unnamed: unnamed.length,
        headings,
        tablesWithoutHeads: [...document.querySelectorAll("table")].filter((t) => !t.querySelector("th")).length,
        overflow: document.documentElement.scrollWidth - window.innerWidth,
    };
}

async function open(browser, look) {
    const out = { look: look.name, requests: [], said: [], seen: {} };
    const context = await browser.newContext(look.options);
    const page = await context.newPage();
    page.on("request", (r) => out.requests.push(r.url()));
    page.on("console", (m) => out.said.push(`console: ${m.text()}`));
    page.on("pageerror", (e) => out.said.push(`error: ${e.message}`));
    page.on("dialog", (d) => {
        out.said.push(`dialog: ${d.message()}`);
        return d.dismiss();
    });
    await page.emulateMedia({ media: look.media || "screen" });
    await page.goto(pathToFileURL(config.page).href, { waitUntil: "load" });
    out.survey = await page.evaluate(survey);
    for (const [name, selector] of Object.entries(config.wanted)) {
        const all = page.locator(selector);
        const first = all.first();
        const count = await all.count();
        const box = count > 0 && (await first.isVisible()) ? await first.boundingBox() : null;
        out.seen[name] = { count, visible: Boolean(box && box.width > 2 && box.height > 2), text: count > 0 ? (await first.textContent()).trim() : "" };
    }
    if (look.name === "light") { // folds and links work without a script
        const fold = page.locator("main details").first();
        const was = await fold.evaluate((d) => d.open);
        await fold.locator("summary").first().click();
        out.folds = (await fold.evaluate((d) => d.open)) !== was;
        await fold.locator("summary").first().click();
        await page.click('nav a[href="#modules"]');
        out.links = (await page.evaluate(() => document.getElementById("modules").getBoundingClientRect().top)) < 900;
        await page.evaluate(() => scrollTo(0, 0));
    }
    if (look.media === "print") {
        out.printed = (await page.pdf({ format: "A4" })).length;
    }
    await page.waitForTimeout(100); // what a page asks for late
    if (config.shots) {
        await page.screenshot({ path: path.join(config.shots, `${config.name}-${look.name}.png`), fullPage: true });
    }
    await context.close();
    return out;
}

async function main() {
    const browser = await chromium.launch({
        executablePath: "/usr/bin/chromium",
        args: ["--no-sandbox", "--disable-background-networking", "--no-proxy-server", "--host-resolver-rules=MAP * ~NOTFOUND"],
    });
    for (const out of await Promise.all(looks.map((look) => open(browser, look)))) {
        process.stdout.write(`${JSON.stringify(out)}\n`);
    }
    await browser.close();
}

main().catch((e) => {
    process.stderr.write(`${e.stack}\n`);
    process.exit(1);
});
