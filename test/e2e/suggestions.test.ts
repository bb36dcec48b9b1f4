// proof, timeout: 120s: a whole daemon
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { runCli } from '../cli/fake-daemon.js'
import { suggestions } from '../cli/suggestions.js'
import { data, dist, wordsOf } from '../cli/tree.js'
import { agentOnPath } from './agent-on-path.js'
import { Installed } from './installed.js'

/** They end what the others need, read standard input, ask in a terminal, or go on until Ctrl-C; the tests of each have them. */
const apart =
  /^svc (?:bridge setup|daemon|run|session attach|extension (?:dev|test)|drain|undrain|vault put|support bundle|import x|service install --system --user)\b|--follow/
/** What a suggestion may end with here, where nothing has the name that a placeholder stands for. */
const answered = new Set([0, 4, 5, 6, 7])
const mostMs = 60_000

/** A suggestion with values that a person would put in the place of its placeholders. */
function filled(command: string, auditHead: string): string {
  return (
    command
      .replace('--expect x', `--expect ${auditHead}`)
      .replace('verdict x <outcome>', 'verdict x approved')
      .replace(/^(svc extension init) \S+/, '$1 acme.other')
      .replace(/^(svc extension (?:build|validate))(?: x)?$/, '$1 acme.hello')
      .replace(/<file>|<layout>/g, 'spec.json')
      .replace(/<folder>/g, 'restored')
      .replace('resource put x ', 'resource put automation.job ')
      // An agent, for whose prompt it is, has a session of its own.
      .replace(/^svc network send .* --work x$/, "$& 'text' --session x")
  )
}

test('every command suggested by an error or a doctor item gets an answer from a real daemon', async () => {
  const at = new Installed()
  try {
    const folder = at.makeRepository('project')
    const env = { ...at.env, PATH: agentOnPath(at.folder) }
    await at.svc('daemon', 'start')
    await at.svc('workspace', 'add', folder)
    for (const name of ['HEARTBEAT.md', 'spec.json']) writeFileSync(join(folder, name), '{}')
    const svc = (argv: readonly string[]) =>
      runCli(at.home, argv, { data, root: dist, cwd: folder, env, signal: AbortSignal.timeout(mostMs) })
    assert.is((await svc(['extension', 'init', 'acme.hello'])).code, 0)
    const { items } = JSON.parse((await svc(['doctor', '--json'])).stdout) as {
      items: { suggested_command?: string }[]
    }
    const { head } = JSON.parse((await svc(['audit', 'verify', '--json'])).stdout) as { head: string }
    const fromDoctor = items.flatMap(({ suggested_command: text }) =>
      text?.startsWith('svc ') ? text.split(' && ') : [],
    )
    const commands = new Set(
      [...fromDoctor, ...suggestions().flatMap(({ whole }) => whole)].map(text => filled(text, head)),
    )
    const wrong: string[] = []
    let seen = 0
    for (const command of commands) {
      if (apart.test(command)) continue
      seen++
      const { code, stdout, stderr } = await svc(wordsOf(command).slice(1))
      if (!answered.has(code)) wrong.push(`${command}: ${code} ${stdout}${stderr}`)
    }
    assert.ok(seen > 40, `${seen}`)
    assert.equal(wrong, [])
  } finally {
    await at.remove()
  }
})

test.run()
