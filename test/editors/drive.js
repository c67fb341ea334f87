// drive.js URL: uses the editor at URL as a person does, in Chromium: changes a
// file, saves it, and runs the task that builds. What it does is in the file SAID,
// and it ends when there is a file END.
const fs = require('fs');
const say = (text) => fs.appendFileSync(process.env.SAID, text + '\n');
const puppeteer = require(process.env.EDITORS + '/node_modules/puppeteer-core');

(async () => {
  const browser = await puppeteer.launch({
    executablePath: process.env.CHROMIUM, headless: true, protocolTimeout: 600000,
    args: ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage', '--disable-quic', '--disable-background-networking'],
  });
  setInterval(() => {
    if (fs.existsSync(process.env.END)) {
      browser.close().finally(() => { say('closed'); process.exit(0); });
    }
  }, 200);
  const page = await browser.newPage();
  page.setDefaultTimeout(600000);
  const url = new URL(process.argv[2]);
  const folder = process.env.FOLDER;
  url.searchParams.set('folder', folder);
  url.searchParams.set('payload', JSON.stringify([['openFile', 'vscode-remote://' + url.host + folder + '/README']]));
  await page.goto(url.href, { waitUntil: 'domcontentloaded' });
  const line = '.editor-instance .monaco-editor .view-line';
  await page.waitForSelector(line);
  await page.waitForFunction((line) => document.querySelector(line).textContent.includes('hello'), {}, line);
  say('the file is open');
  await page.click(line);
  await page.keyboard.down('Control');
  await page.keyboard.press('Home');
  await page.keyboard.up('Control');
  await page.keyboard.type('changed in the browser: ');
  // It saves by itself too, a moment after the last key.
  await page.keyboard.down('Control');
  await page.keyboard.press('KeyS');
  await page.keyboard.up('Control');
  await page.waitForFunction(() => !document.querySelector('.tab.dirty'));
  say('it is saved');
  // The extension that knows of tasks begins after the window.
  for (;;) {
    await page.keyboard.down('Control');
    await page.keyboard.down('Shift');
    await page.keyboard.press('KeyB');
    await page.keyboard.up('Shift');
    await page.keyboard.up('Control');
    try {
      await page.waitForSelector('.terminal-wrapper .xterm', { timeout: 20000 });
      break;
    } catch (e) {
      say('no terminal yet');
    }
  }
  say('the task has a terminal');
})().catch((e) => say('failed: ' + e.stack));
