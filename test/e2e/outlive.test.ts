// proof, timeout: 240s: whole daemons, killed, and agents that leave processes behind in every way
import { randomUUID } from 'node:crypto'
import { cpSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { inspectProcess } from '../../plugins/platform/processes/inspect.js'
import { appear, escapes, tagged } from '../plugins/platform/processes/escapes.js'
import { Installed, until } from './installed.js'

const agent = fileURLToPath(new URL('../fixtures/acp-agent.mjs', import.meta.url))
const example = fileURLToPath(new URL('../../examples/extensions/clock-node', import.meta.url))

/** A home whose agent and whose extension leave processes when they start. */
class Leaving extends Installed {
  readonly tags = { session: randomUUID(), extension: randomUUID() }
  readonly #repository = this.makeRepository('repository')
  /** With `off` the daemon makes no cgroup, and what it started is known by its mark alone. */
  constructor(readonly cgroup: 'on' | 'off') {
    super()
    const folder = join(this.home, 'agents', 'leaver')
    mkdirSync(folder, { recursive: true })
    const script = this.#script('agent.sh', `exec ${process.execPath} ${agent}`, this.tags.session)
    const front = `name: leaver\npermissions: approve-all\ncommand: 'sh ${script}'`
    writeFileSync(join(folder, 'AGENT.md'), `---\n${front}\n---\nYou leave.\n`)
  }

  /** Runs the program, and a daemon in it, with or without cgroups. */
  async cli(...args: string[]): Promise<string> {
    const { code, stdout, stderr } = await this.run(args, undefined, this.cgroup === 'off' ? { SVC_CGROUP: 'off' } : {})
    if (code !== 0) throw new Error(`svc ${args.join(' ')} ended with ${code}:\n${stdout}${stderr}${this.logTail()}`)
    return stdout
  }

  async session(): Promise<string> {
    const { status, text } = await this.request('socket', 'POST', '/api/workspaces/resolve', { path: this.#repository })
    assert.is(status, 200, text)
    const body = { workspace: JSON.parse(text).workspace.id, agent_name: 'leaver', sandbox: 'none' }
    const made = await this.request('socket', 'POST', '/api/sessions', body)
    assert.is(made.status, 201, made.text)
    const { id, workspace_id } = JSON.parse(made.text).session
    // The first prompt starts the agent; its answer is a stream that ends with the turn.
    const path = `/api/workspaces/${workspace_id}/sessions/${id}/prompt`
    await this.request('socket', 'POST', path, { text: 'say hello' })
    await this.#left(this.tags.session)
    return id
  }

  /** The example's process, started by a shell that leaves others before it becomes that process. */
  async extension(): Promise<void> {
    const folder = join(this.home, 'extensions', 'clock-node')
    cpSync(example, folder, { recursive: true })
    const manifest = join(folder, 'extension.toml')
    const script = this.#script('extension.sh', 'exec "$@"', this.tags.extension)
    const text = readFileSync(manifest, 'utf8')
    const args = `"${script}", "node", "{{config_dir}}/main.mjs"`
    writeFileSync(
      manifest,
      text.replace('command = "node"', 'command = "sh"').replace(/^args = .*$/m, `args = [${args}]`),
    )
    // The daemon finds the folder a moment later.
    const enabled = async () => ((await this.run(['extension', 'enable', 'clock-node'])).code === 0 ? true : undefined)
    await until(enabled, 60_000, () => `the extension${this.logTail()}`)
    await this.#left(this.tags.extension)
  }

  get left(): number[] {
    return [...tagged(this.tags.session), ...tagged(this.tags.extension)]
  }

  /** Those that are left once none of them comes or goes: one that leaves in two steps is two for a moment. */
  async settled(): Promise<number[]> {
    const looks: number[][] = []
    const isSteady = () => {
      looks.push(this.left)
      return looks.length > 5 && looks.slice(-5).every(look => String(look) === String(this.left)) ? true : undefined
    }
    await until(isSteady, 60_000, () => `processes that stay${this.logTail()}`)
    return this.left
  }

  /** Where the daemon lives among cgroups. */
  get place(): string {
    return readFileSync(`/proc/${this.discovery.pid}/cgroup`, 'utf8').match(/^0::(.*)$/m)?.[1] ?? ''
  }

  async kill(): Promise<void> {
    const { pid } = this.discovery
    process.kill(pid, 'SIGKILL')
    await until(
      () => (inspectProcess(pid, process.platform)?.ended === false ? undefined : true),
      60_000,
      () => 'the end of the daemon',
    )
  }

  #script(name: string, then: string, tag: string): string {
    const path = join(this.folder, name)
    writeFileSync(path, `${escapes(tag).join('\n')}\n${then}\n`)
    return path
  }

  async #left(tag: string): Promise<void> {
    const count = escapes(tag).length
    const found = await appear(tag, count)
    assert.ok(found.length >= count, `${found.length} of ${count} processes are there${this.logTail()}`)
  }
}

for (const cgroup of ['on', 'off'] as const) {
  const test = suite(`with cgroups ${cgroup}`)
  const at = new Leaving(cgroup)
  const beside = new Leaving(cgroup)
  let others: number[] = []
  test.after(async () => {
    await Promise.all([at.remove(), beside.remove()])
    for (const pid of [...at.left, ...beside.left]) process.kill(pid, 'SIGKILL')
  })
  if (process.platform !== 'linux') continue

  test('a daemon moves into a cgroup of its home where it can create one', async () => {
    await Promise.all([at.cli('daemon', 'start'), beside.cli('daemon', 'start')])
    await beside.session()
    others = await beside.settled()
    if (cgroup === 'off') assert.not.match(at.place, /svc-/)
    else if (!/svc-/.test(at.place)) console.log(`skipped: this machine lets no daemon make a cgroup (${at.place})`)
  })

  test('the stop of a session ends the leftover processes of its agent', async () => {
    const id = await at.session()
    await at.cli('session', 'stop', id)
    assert.equal(tagged(at.tags.session), [])
  })

  test('the stop of an extension ends its leftover processes and no session of the same daemon', async () => {
    await at.session()
    const sessions = tagged(at.tags.session)
    await at.extension()
    await at.cli('extension', 'disable', 'clock-node')
    assert.equal(tagged(at.tags.extension), [])
    assert.equal(tagged(at.tags.session), sessions)
  })

  test('the stop of the daemon ends all leftover processes', async () => {
    await at.cli('extension', 'enable', 'clock-node')
    assert.ok((await appear(at.tags.extension, escapes(at.tags.extension).length)).length > 0)
    await at.cli('daemon', 'stop')
    assert.equal(at.left, [])
  })

  test('the start after kill -9 ends the leftover processes of the killed daemon', async () => {
    await at.cli('daemon', 'start')
    await at.session()
    await at.kill()
    assert.ok(at.left.length > 0)
    await at.cli('daemon', 'start')
    assert.equal(tagged(at.tags.session), [])
    await at.cli('daemon', 'stop')
    assert.equal(at.left, [])
  })

  test('the processes of another home continue', async () => {
    assert.equal(beside.left, others)
    const place = beside.place
    await beside.cli('daemon', 'stop')
    assert.equal(beside.left, [])
    for (const mount of ['/sys/fs/cgroup', '/sys/fs/cgroup/unified'])
      if (cgroup === 'on') assert.not(existsSync(join(mount, place)) && /svc-/.test(place))
  })

  test.run()
}
