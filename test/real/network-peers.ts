// Real agents that talk to each other: `node --import tsx test/real/network-peers.ts [agent agent]`; default: those of each change.
// Run by scripts/test-real.ts, which installs the agents and says in SVC_REAL_AGENTS where. A person hands the first one a piece of
// work; it hands a part to the second; they answer each other until the budget of both is spent, and a person follows all of it.
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { program } from '../e2e/installed.js'
import { TaskWorld, until } from '../fixtures/task-world.js'
import type { Reply } from '../harness/kernel.js'
import { AT_EACH_CHANGE, commandOf, type RealAgent, realAgents } from './agents.js'

const named = process.argv.slice(2).filter(name => realAgents[name])
const [first = '', second = ''] = named.length === 2 ? named : AT_EACH_CHANGE
const installed = process.env.SVC_REAL_AGENTS
if (!installed) throw new Error('usage: npm run test:real -- network')

/** How long real agents on a busy machine may take for anything. */
const PATIENCE_MS = 90_000
/** Wakes that each of them has. */
const WAKES = 2
/** Modes of both: one that allows all, in a sandbox, and the one that agents have where nothing is said. */
const MODES = ['approve-all', 'approve-reads'] as const
type Mode = (typeof MODES)[number]

let model: ChildProcess
let base = ''
let world: TaskWorld

test.before(async () => {
  const script = fileURLToPath(new URL('fake-model.mjs', import.meta.url))
  model = spawn(process.execPath, [script, '0'], { stdio: ['ignore', 'pipe', 'inherit'] })
  const [line] = await once(model.stdout!, 'data')
  base = /http:\/\/\S+/.exec(String(line))?.[0] ?? ''
  world = await TaskWorld.open()
  const home = world.svc.env.HOME ?? ''
  for (const name of [first, second])
    for (const mode of MODES) {
      const command = commandOf(realAgents[name] as RealAgent, { root: installed, home, base })
      const head = `name: ${name}-${mode}\npermissions: ${mode}\ncommand: '${command}'`
      world.svc.writeHome(
        path.join('agents', `${name}-${mode}`, 'AGENT.md'),
        `---\n${head}\n---\nYou do what you are told.\n`,
      )
    }
})
test.after(async () => {
  await world?.close()
  model?.kill()
})

/** A script of the model: these steps, one after the other, then a word. */
const script = (...steps: readonly string[]) => [...steps, '[[say:done]]'].join('')
/** One step of it. Brackets within would end it, so they are written as JSON can. */
const step = (directive: string) => {
  const inner = directive.slice(2, -2).replace('tool:', 'do:')
  return `[[${inner.replaceAll('[[', '\\u005b\\u005b').replaceAll(']]', '\\u005d\\u005d')}]]`
}
const body = (value: object) => `--body '${JSON.stringify(value)}'`

interface Peer {
  readonly agent: RealAgent
  readonly sessionId: string
  readonly peerId: string
}

/** A session of an agent that takes part in a channel, with a budget of {@link WAKES} wakes. */
async function join(name: string, mode: Mode, channel: string): Promise<Peer> {
  const bounds = { max_wakes: WAKES, max_wake_depth: 5, coalesce_window: '100ms' }
  const { session } = await world.post('/api/sessions', {
    ...{ workspace: world.workspace, agent_name: `${name}-${mode}` },
    network_participation: { mode: 'live', channel_strategy: 'named', channel_id: channel, bounds },
  })
  const { peers } = await ofNetwork<{ peers: Reply[] }>('peers', 'list')
  const { peer_id: peerId } = peers.find(one => one.session_id === session.id) ?? {}
  return { agent: realAgents[name] as RealAgent, sessionId: session.id, peerId }
}

/** What a command of the network answers. */
const ofNetwork = <T = Reply>(...args: string[]) =>
  world.svc.json<T>('network', ...args, '--workspace', world.workspace)
const eventsOf = async ({ sessionId }: Peer): Promise<Reply[]> =>
  (await world.request('GET', `/api/workspaces/${world.workspace}/sessions/${sessionId}/events?limit=1000`)).body.events
const usageOf = ({ sessionId }: Peer) => ofNetwork('usage', '--owner-kind', 'session', '--owner-id', sessionId)

/** What happened, for whoever reads that a test failed. */
async function trace(peers: readonly Peer[]): Promise<string> {
  const log = (await (await fetch(`${base}/__log`)).json()) as Reply[]
  const events = await Promise.all(
    peers.map(async peer =>
      (await eventsOf(peer)).map(({ type, content }) => `${peer.peerId} ${type} ${JSON.stringify(content)}`),
    ),
  )
  const lines = [...events.flat(), ...log.slice(-20).map(({ result }) => `model ${result}`)]
  return lines.map(line => line.slice(0, 600)).join('\n')
}

/** What each of them does when it is woken. Each also tries what a message may not lead to. */
function scriptsFor(mode: Mode, channel: string, [one, two]: readonly [Peer, Peer], job: string, part: string) {
  // In a sandbox there is nothing that a command could ask to be let out of.
  const shell = ({ agent }: Peer, command: string) => step(agent.tool(command, mode !== 'approve-all'))
  const bin = path.join(path.dirname(program), 'svc')
  const send = `network send ${channel}`
  const about = (work: string) => `--work ${work} --to PEER_ID --reply-to MESSAGE_ID`
  const accepted = `--kind receipt ${body({ for_id: 'MESSAGE_ID', status: 'accepted' })}`
  const working = `--kind trace --body '{\\"state\\":\\"working\\"}'`
  const reply = {
    reply_to_message_id: 'MESSAGE_ID',
    body: 'is more left? [[play:left]]',
    metadata: { message_kind: 'reply' },
  }
  const isByTool = mode === 'approve-all'
  return {
    begin: script(
      shell(one, `"$SVC_BIN" ${send} ${about(job)} ${accepted}`),
      shell(one, `"$SVC_BIN" ${send} 'a part of it for you [[play:part]]' --to ${two.peerId} --work ${part}`),
      shell(one, `touch ${touched(mode)}`),
    ),
    part: script(
      shell(two, `$SVC_BIN ${send} ${about(part)} ${accepted}`),
      shell(two, `bash -c "${bin} ${send} ${about(part)} ${working}"`),
      shell(two, `${bin} ${send} ${about(part)} --kind trace ${body({ state: 'completed', message: 'it is done' })}`),
      shell(two, `"$SVC_BIN" ch reply MESSAGE_ID "the part is done! [[play:finish]]"`),
      shell(two, `${bin} ch list && touch ${touched(mode)}`),
    ),
    finish: script(
      shell(
        one,
        `"$SVC_BIN" ${send} --work ${job} --reply-to ${beginning(mode)} --kind trace ${body({ state: 'completed' })}`,
      ),
      isByTool
        ? step(`[[do:tool_call$ ${JSON.stringify({ id: 'service__channel_reply', input: reply })}]]`)
        : shell(one, `"$SVC_BIN" ch reply MESSAGE_ID '${reply.body}'`),
      shell(one, `rm -rf ${world.repository}/src`),
    ),
    left: script(shell(two, `"$SVC_BIN" ch send ${channel} 'yes, one thing' --to ${one.sessionId}`)),
  }
}

const touched = (mode: Mode) => path.join(world.repository, `touched-${mode}`)
/** Id of the message that begins it all. */
const beginning = (mode: Mode) => `msg_${mode.replace('-', '')}`

for (const mode of MODES)
  test(`${first} and ${second} with ${mode} agree on a piece of work and stop when their budget is spent`, async () => {
    const channel = `team-${mode}`
    const peers = [await join(first, mode, channel), await join(second, mode, channel)] as const
    const [one, two] = peers
    const [job, part] = [`job_${mode}`, `part_${mode}`]
    const scripts = JSON.stringify(scriptsFor(mode, channel, peers, job, part))
    await fetch(`${base}/__scripts`, { method: 'POST', body: scripts })
    const follow = ['network', 'watch', channel, '--workspace', world.workspace]
    const watch = world.svc.start(follow)
    await watch.shows(/^TIME/m)
    const to = ['--to', one.peerId, '--session', two.sessionId, '--workspace', world.workspace]
    const text = 'do this piece of work [[play:begin]]'
    await world.svc.svc('network', 'send', channel, text, '--id', beginning(mode), '--work', job, ...to)
    try {
      await until(
        async () => {
          const usage = await Promise.all(peers.map(usageOf))
          return (
            usage.every(({ details }) => details.filter((wake: Reply) => wake.settled_at).length >= WAKES) || undefined
          )
        },
        PATIENCE_MS,
        () => 'the budgets are spent',
      )
      // What a person says later wakes none of them either.
      await world.svc.svc('network', 'send', channel, 'go on', ...to)
      await watch.shows(/go on/)
    } catch (error) {
      throw new Error(`${(error as Error).message}\n${await trace(peers)}${watch.text()}${world.svc.logTail()}`)
    }
    for (const peer of peers) {
      const { details, budget } = await usageOf(peer)
      const wakes = details.map(({ state, depth }: Reply) => [state, depth]).reverse()
      const depths = peer === one ? [1, 3] : [2, 4]
      assert.equal(
        wakes,
        depths.map(depth => ['settled', depth]),
        await trace(peers),
      )
      assert.equal([budget.wakes_used, budget.exhausted_reason], [WAKES, 'max_wakes'])
      const turns = (await eventsOf(peer)).filter(({ type }) => type === 'user_message')
      assert.is(turns.length, WAKES, 'no further turn')
    }
    for (const [work, initiator, target] of [
      [job, two, one],
      [part, one, two],
    ] as const) {
      const { work: found } = await ofNetwork('work', 'lookup', work)
      const seen = [found.state, found.opened_session_id, found.target_session_id]
      assert.equal(seen, ['completed', initiator.sessionId, target.sessionId])
    }
    assert.not.ok(existsSync(touched(mode)), await trace(peers))
    assert.ok(existsSync(path.join(world.repository, 'src')))

    watch.child.kill('SIGINT')
    const shown = (await watch.ended).stdout
      .split('\n')
      .slice(1)
      .map(line => line.replace(/ +$/, ''))
      .filter(Boolean)
    const again = world.svc.start([...follow, '--json'])
    await again.shows(/go on/)
    again.child.kill('SIGINT')
    const output = (await again.ended).stdout
      .trim()
      .split('\n')
      .map(line => JSON.parse(line) as Reply)
    assert.equal(
      output.map(({ kind, peer_from: from, work_id: work, body }) => [kind, from, work, body.status ?? body.state]),
      [
        ['say', two.peerId, job, undefined],
        ['receipt', one.peerId, job, 'accepted'],
        ['say', one.peerId, part, undefined],
        ['receipt', two.peerId, part, 'accepted'],
        ['trace', two.peerId, part, 'working'],
        ['trace', two.peerId, part, 'completed'],
        ['say', two.peerId, undefined, undefined],
        ['trace', one.peerId, job, 'completed'],
        ['say', one.peerId, undefined, undefined],
        ['say', two.peerId, undefined, undefined],
        ['say', two.peerId, undefined, undefined],
      ],
    )
    const unwoken = output.map(({ not_woken: peers = [] }) =>
      peers.map(({ peer_id, reason }: Reply) => [peer_id, reason]),
    )
    assert.equal(
      unwoken.filter(peers => peers.length > 0),
      [[[one.peerId, 'budget_exhausted']], [[one.peerId, 'budget_exhausted']]],
    )
    assert.equal(
      unwoken.slice(-2).every(peers => peers.length > 0),
      true,
    )
    assert.is(shown.filter(line => /^\d\d:\d\d:\d\d /.test(line)).length, output.length, shown.join('\n'))
  })

test.run()
