// proof, timeout: 240s: a whole daemon for each page
import { spawn } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { agentOnPath } from './agent-on-path.js'
import { Installed } from './installed.js'

// A reader types the commands of a page from top to bottom, in the folder of a project.

const root = fileURLToPath(new URL('../..', import.meta.url))
/** Commands that build or test this repository: the test runs within one of them. */
const ofTheTree = /^(?:npm (?:ci|install|test|run)|node scripts)\b/
/** What a page lets the reader fill in. */
const filled = {
  '<provider>': 'claude',
  '<name>': 'acme.hello',
  '<id>': '@last',
  'svc vault put': 'echo 0123456789abcdef | svc vault put',
  '<sha256>': "$(sha256sum acme.keep-1.0.0.tar.gz | cut -d ' ' -f 1)",
}
const mostMs = 60_000

interface Step {
  readonly command: string
  /** What has to be there first, that the page does not make. */
  readonly before?: string
  /** Default 0. */
  readonly status?: number
}

/** Commands of a page that need something first, or end otherwise; by what they begin with. */
const special: Readonly<Record<string, Omit<Step, 'command'>>> = {
  'svc session steer': { before: 'svc session new && svc session prompt @last hang --no-wait' },
  'svc session deny': { before: `svc session new && svc session prompt @last '${asking()}' --no-wait && sleep 1` },
  'svc session approve': { before: `svc session new && svc session prompt @last '${asking()}' --no-wait && sleep 1` },
  // Its questions are rejected, for there is no terminal.
  'svc run --agent report': { status: 9 },
  'svc daemon start --safe-mode': { before: 'svc daemon stop' },
  'svc session health': { before: 'svc session new' },
  'svc extension info': { before: 'svc extension init acme.hello && svc extension install ./acme.hello' },
  // It asks questions, and there is no terminal.
  'svc bridge setup': { status: 1 },
  'svc notifications preset create': { before: bridgeNamed('team') },
  // It asks for consent, and there is no terminal.
  'svc support bundle --': {},
  'svc support bundle': { status: 1 },
  'svc desktop list': { before: 'svc workspace add || true' },
  'svc logs events --errors --in': { before: 'svc workspace add || true' },
  // Only the agent of a session has channels.
  'svc ch list': { status: 6 },
  'svc extension install acme-chat': { status: 7 },
  'svc extension install acme.keep': { before: `svc extension build '${join(root, 'examples/extensions/acme.keep')}'` },
}

function bridgeNamed(name: string): string {
  const body = `--platform irc --extension bridge-irc --scope global --no-enabled --provider-config '{"server":"irc.example","nick":"svc"}' --delivery-defaults '{"group_id":"#ops"}'`
  const routing = `--routing-policy '{"include_group":true,"include_peer":false,"include_thread":false}'`
  return `svc bridge create --display-name ${name} ${body} ${routing}`
}

function asking(): string {
  const options = ['allow_once', 'reject_once'].map(kind => ({ optionId: kind, name: kind, kind }))
  return `ask ${JSON.stringify({ toolCall: { toolCallId: 'c', kind: 'execute', rawInput: { command: 'ls' } }, options })}`
}

/** The commands of a page in order: those of its blocks, and of its tables when they begin with `svc` or are only that. */
function stepsOf(page: string): Step[] {
  const text = readFileSync(join(root, page), 'utf8')
  const blocks = [...text.matchAll(/^```sh\n([\s\S]*?)^```|^((?: {4}svc .*\n)+)|^\|.*\|$/gm)]
  return blocks.flatMap(([whole, fenced, indented]) => {
    const lines = (fenced ?? indented ?? '').replace(/\\\n/g, ' ').split('\n')
    const inTable = fenced === undefined && indented === undefined ? [...whole.matchAll(/`(svc [^`]+)`/g)] : []
    return [...lines, ...inTable.map(([, command = '']) => command)]
      .map(line => line.replace(/\s+#.*$/, '').trim())
      .map(line => Object.entries(filled).reduce((text, [name, value]) => text.replaceAll(name, value), line))
      .filter(line => line !== '' && !ofTheTree.test(line) && !/^svc help|https:|<[a-z]|…/.test(line))
      .map(command => ({ command, ...special[Object.keys(special).find(begin => command.startsWith(begin)) ?? ''] }))
  })
}

/** Runs a line in a shell in which `svc` is the built program; a stream is ended once it has said something. */
function shell(at: Installed, line: string, cwd: string): Promise<{ code: number | null; text: string }> {
  const svc = `svc() { '${process.execPath}' '${join(root, 'dist/bin/svc')}' "$@"; }`
  const isStream = /--follow|--interval|session attach|extension dev/.test(line)
  const command = isStream ? line.replace(/^svc/, `exec '${process.execPath}' '${join(root, 'dist/bin/svc')}'`) : line
  const child = spawn('bash', ['-c', `${svc}; ${command}`], {
    cwd,
    env: { ...at.env, PATH: agentOnPath(at.folder) },
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
  })
  let text = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', part => {
      text += part
      if (isStream) child.kill('SIGINT')
    })
  }
  // With all that it started: what goes on would hold the pipes open.
  const late = setTimeout(() => child.pid !== undefined && process.kill(-child.pid, 'SIGKILL'), mostMs)
  return new Promise(resolve =>
    child.once('close', code => {
      clearTimeout(late)
      resolve({ code: isStream && code === 130 ? 0 : code, text })
    }),
  )
}

// What `docs/plugins.md` says needs packages of the registry: typescript-author.test.ts has it.
// Those of `docs/reliability.md` come after a fault, which the tests that it names make.
const elsewhere = new Set(['docs/plugins.md', 'docs/decisions.md', 'docs/architecture.md', 'docs/reliability.md'])
const pages = ['README.md', ...readdirSync(join(root, 'docs')).map(name => `docs/${name}`)]

for (const page of pages) {
  if (!page.endsWith('.md') || elsewhere.has(page)) continue
  const steps = stepsOf(page)
  if (steps.length === 0) continue
  // Pages that a reader opens later find a daemon that runs.
  if (!/^svc (?:run|init)\b/.test(steps[0]?.command ?? '')) steps.unshift({ command: 'svc daemon start' })
  test(`every command of ${page} works, in order`, async () => {
    const at = new Installed()
    const folder = at.makeRepository('project')
    try {
      for (const { command, before, status = 0 } of steps) {
        if (before !== undefined) {
          const made = await shell(at, before, folder)
          assert.is(made.code, 0, `${before}: ${made.text}`)
        }
        // A home of the test has any free port.
        const typed = command.replace(/(localhost:)2123/, (_, host: string) => host + at.discovery.port)
        let { code, text } = await shell(at, typed, folder)
        // A person answers once the inbox shows the question, which the agent may still be about to ask.
        for (let more = 60; more > 0 && code !== status && /^svc session (?:approve|deny) /.test(command); more--) {
          await new Promise(resolve => setTimeout(resolve, 1000))
          ;({ code, text } = await shell(at, typed, folder))
        }
        assert.is(code, status, `${command}: ${text.slice(-2000)}${at.logTail()}`)
      }
    } finally {
      await at.remove()
    }
  })
}

test.run()
