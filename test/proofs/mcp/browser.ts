import { execFileSync } from 'node:child_process'
import fs from 'node:fs'
import path from 'node:path'
import { chromium } from 'playwright-core'

/** What the command line opens instead of the browser of the desktop: it writes the address into a file. */
export function fakeOpener(folder: string): { readonly path: string; address(): string | undefined } {
  const file = path.join(folder, 'opened')
  fs.mkdirSync(folder, { recursive: true })
  // One argument: were the address split, its first part alone would be there.
  fs.writeFileSync(
    path.join(folder, 'xdg-open'),
    `#!/bin/sh\nprintf '%s' "$1" > '${file}.new' && mv '${file}.new' '${file}'\n`,
    {
      mode: 0o755,
    },
  )
  return { path: folder, address: () => (fs.existsSync(file) ? fs.readFileSync(file, 'utf8') : undefined) }
}

/** Logs in as a person does, on the pages of the authorization server; returns what the last page says. */
export async function logInBy(address: string): Promise<{ readonly pages: readonly string[]; readonly last: string }> {
  const found = execFileSync('sh', ['-c', 'command -v chromium || command -v chromium-browser || true'])
    .toString()
    .trim()
  if (found === '') throw new Error('there is no chromium on the PATH; on Debian: apt-get install chromium')
  // The sandbox of the browser itself does not start as root. Nothing but this machine is reached.
  const args = ['--no-sandbox', '--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1']
  const browser = await chromium.launch({ executablePath: found, args })
  try {
    const page = await browser.newPage()
    const pages: string[] = []
    page.on('framenavigated', frame => void pages.push(new URL(frame.url()).pathname))
    await page.goto(address)
    await page.fill('input[name=login]', 'me')
    await page.fill('input[name=password]', 'a password')
    await page.click('button[type=submit]')
    // The second page asks what the client may do.
    await page.click('button[type=submit]')
    await page.waitForURL('**/api/mcp/oauth/callback**')
    return { pages, last: (await page.textContent('body')) ?? '' }
  } finally {
    await browser.close()
  }
}
