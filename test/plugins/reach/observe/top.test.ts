import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { textWidth } from '../../../../cli/show/text.js'
import { StartedDaemon } from '../../../../testing/daemon.js'
import { eventually } from '../../../fixtures/session-world.js'

const TERMINAL = fileURLToPath(new URL('../../../fixtures/terminal.py', import.meta.url))
const SVC = fileURLToPath(new URL('../../../../dist/svc.cjs', import.meta.url))
const LEAVE = '\x1b[?25h\x1b[?1049l'

/** `svc top` on a terminal of its own. */
class Top {
  #text = ''
  #told = ''
  readonly #child: ChildProcess
  readonly #ended: Promise<number | null>

  constructor(home: string, sizes: string, args: readonly string[] = []) {
    const env = { PATH: process.env.PATH, HOME: home, SVC_HOME: home, TERM: 'xterm', TERMINAL_SIZES: sizes }
    this.#child = spawn('python3', [TERMINAL, process.execPath, SVC, 'top', ...args], { env, stdio: 'pipe' })
    this.#child.stdout?.setEncoding('utf8').on('data', text => {
      this.#text += text
    })
    this.#child.stderr?.setEncoding('utf8').on('data', text => {
      this.#told += text
    })
    this.#ended = once(this.#child, 'close').then(([code]) => code)
  }

  /** The lines of the newest state that was drawn whole, without colours. */
  get lines(): string[] {
    const frame = this.#text.split('\x1b[H').at(-1) ?? ''
    // biome-ignore lint/suspicious/noControlCharactersInRegex: sequences of the terminal
    return frame.replace(/\x1b\[[\d;?]*[A-Za-z]/g, '').split('\r\n')
  }

  shows(what: RegExp): Promise<unknown> {
    return eventually(async () => what.test(this.lines.join('\n')), String(what)).catch(error => {
      throw new Error(`${error.message} in ${this.lines.join('\n')}`)
    })
  }

  type(keys: string): void {
    this.#child.stdin?.write(keys)
  }

  resize(): void {
    this.#child.kill('SIGUSR1')
  }

  /** Sends a signal to the command. */
  signal(name: NodeJS.Signals): void {
    const { pid } = this.#child
    process.kill(Number(readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8')), name)
  }

  /** Its exit code, after it left the terminal as it was. */
  async ended(): Promise<number | null> {
    const code = await this.#ended
    assert.match(this.#told, /echo on/)
    assert.ok(this.#text.includes(LEAVE), JSON.stringify(this.#text.slice(-200)))
    return code
  }
}

const each = async (work: (daemon: StartedDaemon) => Promise<void>) => {
  const daemon = await StartedDaemon.start()
  try {
    await work(daemon)
  } finally {
    await daemon.stop()
  }
}

test('top fills its terminal, follows its size, and restores it at the end', () =>
  each(async daemon => {
    const bridge = (name: string) => ({
      ...{ display_name: name, platform: 'irc', extension_name: 'bridge-irc', scope: 'global', enabled: false },
      routing_policy: { include_peer: true, include_group: false, include_thread: false },
      provider_config: { server: '127.0.0.1', port: 1, tls: false, nick: 'bot', channels: ['#ops'] },
    })
    for (let n = 0; n < 30; n++) {
      const { status, body } = await daemon.request('POST', '/api/bridges', bridge(`Room ${n}`))
      assert.is(status, 201, JSON.stringify(body))
    }
    const top = new Top(daemon.home, '80x24 200x60 40x10', ['--interval', '1'])
    await top.shows(/30 bridges/)
    assert.is(top.lines.length, 24)
    assert.match(top.lines[0] ?? '', /^svc top/)
    assert.match(top.lines.at(-1) ?? '', /^q quit/)
    assert.ok(top.lines.every(line => textWidth(line) <= 80))
    const marked = () => top.lines.find(line => line.startsWith('> ')) ?? ''
    const first = marked()
    assert.match(first, /^> Room \d+ +irc +disabled/)
    top.type('\x1b[B')
    await eventually(async () => marked() !== first, 'another row')
    top.type('k')
    await eventually(async () => marked() === first, 'the first row again')
    top.type('G')
    await eventually(async () => marked() !== first && marked() !== '', 'the last row, which is scrolled to')
    top.type('\r')
    await top.shows(/check +svc bridge verify bri_/)
    top.type('?')
    await top.shows(/PgUp PgDn/)
    top.type('?p')
    await top.shows(/paused/)
    top.type('ps')
    await top.shows(/sort: newest/)
    top.resize()
    await eventually(async () => top.lines.length === 60, 'sixty lines')
    assert.match(top.lines.at(-1) ?? '', /^q quit/)
    top.resize()
    await eventually(async () => top.lines.length === 10, 'ten lines')
    assert.ok(top.lines.every(line => textWidth(line) <= 40))
    // A state that is new is shown without a key.
    await daemon.request('POST', '/api/tasks', { title: 'Deploy', scope: 'global', approval_policy: 'manual' })
    await top.shows(/1 need attention/)
    top.type('q')
    assert.is(await top.ended(), 0)
  }))

test('Ctrl-C and SIGTERM restore the terminal, and a missing daemon does not end top', () =>
  each(async daemon => {
    const interrupted = new Top(daemon.home, '80x24')
    await interrupted.shows(/0 bridges/)
    interrupted.type('\x03')
    assert.is(await interrupted.ended(), 130)
    const top = new Top(daemon.home, '80x24', ['--interval', '1'])
    await top.shows(/0 bridges/)
    await daemon.kill()
    await top.shows(/no daemon is running/)
    top.signal('SIGTERM')
    assert.is(await top.ended(), 143)
  }))

test('top without a terminal and without colours prints plain text once', () =>
  each(async daemon => {
    const { code, stdout } = await daemon.cli('top')
    assert.is(code, 0)
    assert.match(stdout, /^nothing needs attention; 0 queued\n/)
    assert.not.ok(stdout.includes('\x1b'))
    const json = await daemon.cli('top', '--json')
    assert.is(JSON.parse(json.stdout).attention, 0)
  }))

test.run()
