import { chmodSync, existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const agent = fileURLToPath(new URL('../fixtures/acp-agent.mjs', import.meta.url))

/**
 * A PATH on which the provider `claude` is installed, and nothing else that is installed on this machine for users: the
 * scripted agent under the name of its program, logged in.
 */
export function agentOnPath(folder: string): string {
  const bin = join(folder, 'bin')
  mkdirSync(bin, { recursive: true })
  const file = join(bin, 'claude-agent-acp')
  // One that runs cannot be written.
  if (!existsSync(file))
    writeFileSync(file, `#!/bin/sh\ncase "$1" in --cli) exit 0;; esac\nexec ${process.execPath} ${agent}\n`)
  chmodSync(file, 0o755)
  return `${bin}:${dirname(process.execPath)}:/usr/bin:/bin`
}
