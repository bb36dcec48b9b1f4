import { mkdirSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { isDeepStrictEqual } from 'node:util'
import { Installed, processesWith, type Running, until } from '../../e2e/installed.js'
import type { Chance } from '../library/chance.js'
import { AcknowledgedPrompts } from './acknowledged.js'
import { Reader, type SeenFrame } from './reader.js'

const AGENT = fileURLToPath(new URL('../../fixtures/acp-agent.mjs', import.meta.url))
const PATIENCE_MS = 30_000

/** Everything that an agent may be in the middle of; each line takes a moment. */
const TURN = [
  'think about it',
  'say first words',
  'sleep 15',
  'update {"sessionUpdate":"tool_call","toolCallId":"c1","title":"List","kind":"read","status":"pending"}',
  'sleep 20',
  'update {"sessionUpdate":"tool_call_update","toolCallId":"c1","status":"completed","rawOutput":"a"}',
  'call fs/write_text_file {"path":"made.txt","content":"x"}',
  'flood 40',
  'update {"sessionUpdate":"tool_call","toolCallId":"c2","title":"Build","kind":"execute","status":"in_progress"}',
  'child-apart',
  'call terminal/create {"command":"sleep","args":["30"]}',
  'sleep 30',
  'update {"sessionUpdate":"tool_call_update","toolCallId":"c2","status":"failed"}',
  'update {"sessionUpdate":"plan","entries":[{"content":"one","status":"pending","priority":"low"}]}',
  'say last words',
  'sleep 60',
].join('\n')
/** Frames of such a turn, its end included. */
const FRAMES = 12

/** What a kill came to. */
export interface Verdict {
  readonly wrong: string | undefined
  /** In what the kill hit, for people: a proof that hits one point only is none. */
  readonly hit: string
}

/** A home on which a daemon is killed again and again. */
export class Life {
  readonly #at = new Installed()
  /** Where the agent `slow` writes down what it is asked. */
  readonly #ledger = path.join(this.#at.folder, 'ledger')
  #daemon: Running | undefined
  #workspace = ''

  /** Starts the first daemon, with an agent that does what it is told. */
  async begin(): Promise<void> {
    const root = path.join(this.#at.folder, 'work')
    const agent = path.join(this.#at.home, 'agents', 'scripted')
    const slow = path.join(this.#at.home, 'agents', 'slow')
    mkdirSync(root, { recursive: true })
    for (const [folder, name, flags] of [
      [agent, 'scripted', ''],
      [slow, 'slow', `--slow-init=120 --slow-new=80 --ledger=${this.#ledger}`],
    ] as const) {
      mkdirSync(folder, { recursive: true })
      const command = `${process.execPath} ${AGENT} --load ${flags}`
      writeFileSync(path.join(folder, 'AGENT.md'), `---\nname: ${name}\ncommand: '${command}'\n---\nDo as told.\n`)
    }
    writeFileSync(this.#ledger, '')
    await this.#start()
    this.#workspace = (await this.#ask('POST', '/api/workspaces/resolve', { path: root })).workspace.id
  }

  async end(): Promise<void> {
    await this.#at.remove()
  }

  /** Kills the daemon at a random point, starts another one, and looks at what it made of it. */
  kill(chance: Chance): Promise<Verdict> {
    return chance.int(2) === 0 ? this.#killTurn(chance) : this.#killStart(chance)
  }

  /** Kills while an agent starts, or just after, with prompts that were answered and some that were not. */
  async #killStart(chance: Chance): Promise<Verdict> {
    const prompts = new AcknowledgedPrompts({
      ledger: this.#ledger,
      workspace: this.#workspace,
      send: async (method, url, body) => {
        const { status, text } = await this.#at.request('socket', method, url, body)
        return { status, body: text === '' ? undefined : JSON.parse(text) }
      },
    })
    await prompts.begin(chance)
    await this.#killNow()
    await this.#start()
    const { faults, hit } = await prompts.check()
    if (prompts.session !== undefined) {
      const left = processesWith(`SVC_SESSION_ID=${prompts.session}`)
      // Those that run now were started by the prompts of the check.
      if (left.length > 1) faults.push(`processes are left: ${left.join(', ')}`)
      await this.#ask('DELETE', `/api/workspaces/${this.#workspace}/sessions/${prompts.session}`)
    }
    return { wrong: faults.length > 0 ? `${faults.join('; ')} (session ${prompts.session})` : undefined, hit }
  }

  /** Kills at a random point of a turn. */
  async #killTurn(chance: Chance): Promise<Verdict> {
    const created = await this.#ask('POST', '/api/sessions', { workspace: this.#workspace, agent_name: 'scripted' })
    const { id } = created.session
    const at = `/api/workspaces/${this.#workspace}/sessions/${id}`
    const fence = await this.#ask('GET', `${at}/transcript`)
    const reader = this.#read(`${at}/stream?frames=raw`)
    const prompt = { text: TURN, idempotency_key: `key-${id}` }
    const point = chance.int(FRAMES + 1)
    // Nothing may wait for the answer: the kill may come before it.
    this.#at.request('socket', 'POST', `${at}/prompt`, prompt).catch(() => {})
    await Promise.race([reader.has(point), sleep(3000, undefined, { ref: false })])
    await sleep(chance.int(point === 0 ? 300 : 40))
    await this.#killNow()
    reader.close()
    await this.#start()
    const faults = [
      ...(await this.#checkRepair(id, at)),
      ...(await this.#checkFrames(at, reader.frames, fence)),
      ...(await this.#checkUse(at, prompt)),
    ]
    return {
      wrong: faults.length > 0 ? `${faults.join('; ')} (session ${id})` : undefined,
      hit: pointOf(reader.frames),
    }
  }

  /** The state says what happened, everything that began has an end, and no process is left. */
  async #checkRepair(id: string, at: string): Promise<string[]> {
    const faults: string[] = []
    const left = processesWith(`SVC_SESSION_ID=${id}`)
    if (left.length > 0) faults.push(`processes are left: ${left.join(', ')}`)
    const { session } = await this.#ask('GET', `/api/sessions/${id}`)
    const state = [session.state, session.stop_reason, session.failure?.kind, session.stop_detail]
    const expected = ['stopped', 'agent_crashed', 'process_exit', 'daemon crashed while session active']
    if (!isDeepStrictEqual(state, expected)) faults.push(`the session says ${state.join(', ')}`)
    const { events } = await this.#ask('GET', `${at}/events?limit=1000`)
    const types = events.map((event: { type: string }) => event.type)
    if (types.at(-1) !== 'session_stopped') faults.push(`the journal ends with ${types.at(-1)}`)
    const count = (type: string) => types.filter((other: string) => other === type).length
    if (count('session_stopped') !== 1) faults.push(`${count('session_stopped')} stops`)
    if (count('user_message') !== count('done') + count('error')) faults.push(`a turn without one end: ${types}`)
    const idsOf = (type: string) =>
      new Set(
        events
          .filter((event: { type: string }) => event.type === type)
          .map((event: { content: { tool_call_id: string } }) => event.content.tool_call_id),
      )
    const open = [...idsOf('tool_call')].filter(call => !idsOf('tool_result').has(call))
    if (open.length > 0) faults.push(`calls without a result: ${open.join(', ')}`)
    return faults
  }

  /** What a reader saw is there as it was, or the generation says why not, and a reader that comes back is told. */
  async #checkFrames(at: string, seen: readonly SeenFrame[], before: Fence): Promise<string[]> {
    const { events } = await this.#ask('GET', `${at}/events?limit=1000`)
    const now: Fence = await this.#ask('GET', `${at}/transcript`)
    const stored = new Map(events.map((event: { sequence: number }) => [String(event.sequence), event]))
    const lost = seen.filter(({ id, data }) => !isDeepStrictEqual(stored.get(id ?? ''), data))
    const faults: string[] = []
    if (lost.length > 0 && now.generation === before.generation) {
      faults.push(`frames that a reader saw are not there: ${lost.map(({ id, event }) => `${id} ${event}`).join(', ')}`)
    }
    const query = `epoch=${before.epoch}&generation=${before.generation}`
    const reader = this.#read(`${at}/stream?${query}`, seen.at(-1)?.id ?? '0')
    await Promise.race([reader.has(1), sleep(PATIENCE_MS, undefined, { ref: false })])
    reader.close()
    const [frame] = reader.frames
    const reason = now.generation === before.generation ? undefined : 'generation_mismatch'
    if (frame?.data?.reason !== reason) faults.push(`a reader that comes back is told ${frame?.data?.reason}`)
    return faults
  }

  /** The prompt is not carried out twice, and the session goes on. */
  async #checkUse(at: string, prompt: { readonly text: string; readonly idempotency_key: string }): Promise<string[]> {
    const faults: string[] = []
    const { events } = await this.#ask('GET', `${at}/events?type=user_message`)
    const again = await this.#at.request('socket', 'POST', `${at}/prompt`, prompt)
    const body = JSON.parse(again.text)
    if (again.status === 200 ? events.length > 0 : again.status !== 202 && again.status !== 409) {
      faults.push(`the same prompt again: ${again.status} ${again.text}`)
    }
    const turn =
      again.status === 200
        ? body.prompt.new_turn_id
        : (await this.#ask('POST', `${at}/prompt`, { text: 'say again' })).prompt.new_turn_id
    await until(
      async () => {
        const { events } = await this.#ask('GET', `${at}/events?turn_id=${turn}&limit=1000`)
        // The prompt that the kill preceded asks for a permission, which nobody gives.
        if (again.status === 200 && events.length > 0) await this.#at.request('socket', 'POST', `${at}/prompt/cancel`)
        return events.some((event: { type: string }) => event.type === 'done') || undefined
      },
      PATIENCE_MS,
      () => `a turn after the restart${this.#at.logTail()}`,
    )
    await this.#ask('DELETE', at)
    return faults
  }

  async #start(): Promise<void> {
    const daemon = this.#at.start(['daemon', 'start', '--foreground'])
    this.#daemon = daemon
    await daemon.shows(/daemon is ready/)
  }

  async #killNow(): Promise<void> {
    this.#daemon?.child.kill('SIGKILL')
    await this.#daemon?.ended
  }

  #read(url: string, lastEventId?: string): Reader {
    return new Reader(path.join(this.#at.home, 'daemon.sock'), url, lastEventId)
  }

  // biome-ignore lint/suspicious/noExplicitAny: the body of any reply
  async #ask(method: string, url: string, body?: unknown): Promise<any> {
    const { status, text } = await this.#at.request('socket', method, url, body)
    if (status >= 300) throw new Error(`${method} ${url}: ${status} ${text}`)
    return text === '' ? undefined : JSON.parse(text)
  }
}

interface Fence {
  readonly epoch: number
  readonly generation: number
}

function pointOf(seen: readonly SeenFrame[]): string {
  return seen.at(-1)?.event ?? 'before anything'
}
