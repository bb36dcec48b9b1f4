import { spawn } from 'node:child_process'
import { join } from 'node:path'
import { readRegularFileSync } from '../../kernel/kit/read-file.js'
import { CliFault } from '../fault.js'
import type { LocalContext } from '../local.js'

const mostBytes = 16 * 1024 * 1024

interface Reloaded {
  readonly skipped?: boolean
  readonly restart_required?: boolean
}

/** `config path`: path of config.json in this home, even if the file does not exist. */
export async function printConfigPath({ out, home }: LocalContext): Promise<undefined> {
  const path = join(home, 'config.json')
  if (out.json) out.value({ path })
  else out.line(path)
}

/** `config edit`: opens config.json in the caller's editor, and lets the daemon reload it. */
export async function editConfig({ io, out, home, client }: LocalContext): Promise<undefined> {
  const file = join(home, 'config.json')
  const [program, ...args] = (io.env.VISUAL || io.env.EDITOR || '').split(/\s+/).filter(Boolean)
  if (program === undefined) {
    throw new CliFault('editor_missing', `no editor is set to open ${file} with`, {
      next: 'EDITOR=nano svc config edit',
    })
  }
  const text = () => readRegularFileSync(file, { maxBytes: mostBytes })?.toString()
  const before = text()
  await edited(program, [...args, file])
  if (text() === before) {
    if (out.json) out.value({ skipped: true })
    else out.line('no changes')
    return
  }
  const reloaded = (await client.request('POST', '/api/settings/reload')) as Reloaded
  if (out.json) out.value(reloaded)
  else if (reloaded.restart_required) out.line('saved; takes effect with a restart (svc daemon restart)')
  else out.line('saved; in effect now')
}

function edited(program: string, args: readonly string[]): Promise<void> {
  return new Promise((resolve, reject) => {
    const failed = (why: string) =>
      reject(new CliFault('editor_failed', `${program} failed: ${why}`, { next: 'EDITOR=nano svc config edit' }))
    const child = spawn(program, args, { stdio: 'inherit' })
    child.once('error', error => failed(error.message))
    child.once('close', code => (code === 0 ? resolve() : failed(`it ended with ${code ?? 'a signal'}`)))
  })
}
