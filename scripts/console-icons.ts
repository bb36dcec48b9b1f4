/** Makes the PNG icons of the console from its SVG icon: `node --import tsx scripts/console-icons.ts`. */
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { chromium } from 'playwright-core'

const app = fileURLToPath(new URL('../plugins/desk/console/app', import.meta.url))
const svg = readFileSync(path.join(app, 'icon.svg'), 'utf8').trim()
/** Systems cut a maskable icon to their own shape, so its ground has no corners and its sign is smaller. */
const maskable = svg.replace('rx="8" ', '').replace('<path ', '<path transform="translate(3.2 3.2) scale(.8)" ')

const executablePath = execFileSync('sh', ['-c', 'command -v chromium || command -v chromium-browser || true'])
const browser = await chromium.launch({ executablePath: executablePath.toString().trim(), args: ['--no-sandbox'] })
for (const [name, picture, size] of [
  ['icon-192', svg, 192],
  ['icon-512', svg, 512],
  ['icon-maskable-512', maskable, 512],
] as const) {
  const page = await browser.newPage({ viewport: { width: size, height: size } })
  const sized = picture.replace('<svg ', `<svg width="${size}" height="${size}" style="display:block" `)
  await page.setContent(`<body style="margin:0">${sized}</body>`)
  await page.screenshot({ path: path.join(app, 'icons', `${name}.png`), omitBackground: true })
}
await browser.close()
