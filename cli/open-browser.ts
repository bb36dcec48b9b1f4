import { spawn } from 'node:child_process'

const OPENERS: Readonly<Record<string, string>> = { darwin: 'open', linux: 'xdg-open' }

/** Opens an address in the browser, where there is one. The address is one argument, so that its author cannot inject a command. */
export function openBrowser(url: string): void {
  const program = OPENERS[process.platform]
  if (program === undefined || !/^https?:/.test(url)) return
  const child = spawn(program, [url], { stdio: 'ignore', detached: true })
  child.on('error', () => {})
  child.unref()
}
