// Daemons of a realm lose no message and receive none twice, while one is killed and one is cut off in turn: `npm run prove:network -- --messages 600 --kills 2 --cuts 2`
//
// Three whole daemons, each a process with a home of its own, that trust each other as a person sets it up, talk through one nats-server,
// each by a way that can be cut. `--messages` is what each of them says; at the end all three have to have the same messages, and a
// session of each has heard each of them once. An envelope that is forged meanwhile is refused, and doctor names its daemon. Then one of
// them offers `--offers` tasks, and agents of the others work on them, while `--offer-kills` daemons are killed and `--offer-cuts` cut off
// from the one that offers for longer than their lease: each result is taken once, and each execution is accounted for. With `--clock 3600`
// the clock of the second daemon is an hour ahead (the Debian package faketime), and doctor of the others says so. With `--namespaces`
// each daemon has a network namespace of its own (only root can make them), and its link is set down to cut it off; with `--loss` as well
// its link loses what is sent for some milliseconds, again and again. `--kill-every 300 --cut-every 60` are faults by the clock, in seconds,
// for as long as the daemons talk: a run of a million messages is `--messages 333334 --pause 0 --minutes 10000` with them.
import { existsSync, readdirSync } from 'node:fs'
import { performance } from 'node:perf_hooks'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { jetstream } from '@nats-io/jetstream'
import { connect } from '@nats-io/transport-node'
import { identityOf, newSecret, signed } from '../../plugins/reach/network-nats/proof.js'
import { NatsServer } from '../fixtures/nats-server.js'
import { chance } from './library/chance.js'
import { firstSeed } from './library/seed.js'
import { proveOffers } from './network/offers.js'
import { Speaker } from './network/speaker.js'
import { Hosts, proxyTo, type Way } from './network/ways.js'

const { values } = parseArgs({
  options: {
    messages: { type: 'string', default: '600' },
    kills: { type: 'string', default: '2' },
    cuts: { type: 'string', default: '2' },
    'kill-every': { type: 'string', default: '0' },
    'cut-every': { type: 'string', default: '0' },
    pause: { type: 'string', default: '5' },
    minutes: { type: 'string', default: '5' },
    offers: { type: 'string', default: '8' },
    'offer-kills': { type: 'string', default: '2' },
    'offer-cuts': { type: 'string', default: '1' },
    clock: { type: 'string', default: '0' },
    loss: { type: 'boolean', default: false },
    namespaces: { type: 'boolean', default: false },
  },
})
const REALM = 'proof'
const CUT_MS = 1500
/** How often the one session of a daemon that is addressed may be woken: the default bound of its participation. */
const MAX_WAKES = 8
const messages = Number(values.messages)
const names = ['ada', 'bob', 'cid']
const faults: string[] = []
const startedAt = performance.now()
const seconds = () => ((performance.now() - startedAt) / 1000).toFixed(1)
const note = (text: string) => console.log(`${seconds()} s: ${text}`)
const isLate = () => performance.now() - startedAt > Number(values.minutes) * 60_000

const seed = firstSeed()
const random = chance('network', seed)
const ahead = Number(values.clock)
/** The way of a daemon, whose clock is ahead when it is the second one; the program `faketime` itself would stay its parent. */
function aheadOf(way: Way, n: number): Way {
  if (n !== 1 || ahead === 0) return way
  const library = readdirSync('/usr/lib')
    .map(folder => `/usr/lib/${folder}/faketime/libfaketimeMT.so.1`)
    .find(file => existsSync(file))
  if (library === undefined) throw new Error('--clock: the Debian package faketime is not installed')
  const env = [`LD_PRELOAD=${library}`, `FAKETIME=+${ahead}s`, 'FAKETIME_DONT_FAKE_MONOTONIC=1']
  return { ...way, through: [...way.through, 'env', ...env] }
}

/** Kills a daemon, or cuts one off, in turn. */
async function strike(what: 'kill' | 'cut', daemon: Speaker): Promise<void> {
  if (what === 'kill') return daemon.kill()
  await daemon.way.cut(true)
  await sleep(CUT_MS)
  await daemon.way.cut(false)
}

/** Faults by the clock, one or another daemon in turn, until the signal aborts; returns how many there were. */
async function strikeEvery(what: 'kill' | 'cut', daemons: readonly Speaker[], signal: AbortSignal): Promise<number> {
  const every = Number(values[`${what}-every`]) * 1000
  let times = 0
  while (every > 0 && !signal.aborted) {
    await sleep(every, undefined, { signal }).catch(() => {})
    if (signal.aborted) break
    const daemon = daemons[(times + (what === 'cut' ? 1 : 0)) % daemons.length] as Speaker
    times++
    note(`${what} ${daemon.name}`)
    await strike(what, daemon)
  }
  return times
}

/** Lets links lose packets for a moment, one or another, until the signal aborts. */
async function lose(daemons: readonly Speaker[], signal: AbortSignal): Promise<number> {
  let times = 0
  for (; !signal.aborted; times++) {
    const { way } = random.of(daemons)
    await way.cut(true)
    await sleep(20 + random.int(60))
    await way.cut(false)
    await sleep(100 + random.int(300))
  }
  return times
}
console.log(`SVC_SEED=${seed}`)

/** What ended a daemon's talk. */
let failure: unknown

/** Waits until something holds; that it never does is a fault. */
async function until(what: string, holds: () => Promise<boolean>, pauseMs = 100): Promise<void> {
  while (!(await holds())) {
    if (failure !== undefined) throw failure
    if (isLate()) throw new Error(`not within ${values.minutes} minutes: ${what}`)
    await sleep(pauseMs)
  }
}

/** Puts an envelope into the stream in the name of a daemon, signed with the key of another one. */
async function forge(servers: string, daemon: string, from: string): Promise<void> {
  const connection = await connect({ servers })
  const at = Math.floor(Date.now() / 1000)
  const envelope = {
    ...{ protocol: 'svc-network/v1', id: 'msg_forged', channel: 'team', kind: 'say', surface: 'thread' },
    ...{ thread_id: 'thread_forged', from, ts: at, expires_at: at + 3600, body: { text: 'forged' } },
  }
  const content = signed(envelope, identityOf(newSecret()), { realm: REALM, at, attempt: 0 })
  await jetstream(connection).publish(`svc.${REALM}.m.team.${daemon}`, JSON.stringify(content))
  await connection.close()
}

if (values.namespaces && process.getuid?.() !== 0) throw new Error('--namespaces: only root makes network namespaces')
const hosts = values.namespaces ? new Hosts() : undefined
// Also when it is interrupted, no host stays behind.
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(1))
process.once('exit', () => hosts?.close())
await hosts?.open()
const server = await NatsServer.start([], hosts?.address)
const daemons: Speaker[] = []
const lost = new AbortController()
try {
  daemons.push(
    ...(await Promise.all(
      names.map(async (name, n) =>
        Speaker.start(name, aheadOf((await hosts?.host(n, server.port)) ?? (await proxyTo(server.port)), n)),
      ),
    )),
  )
  const othersOf = (daemon: Speaker) => daemons.filter(other => other !== daemon)
  await Promise.all(daemons.map(daemon => daemon.join(othersOf(daemon), REALM)))
  const present = daemons.length * 5
  const isTogether = async () =>
    (await Promise.all(daemons.map(one => one.peers()))).every(all => all.length === present)
  await until('the daemons know the peers of each other', isTogether)
  note(`${daemons.length} daemons know the ${present} peers of each other`)

  const losing = values.loss ? lose(daemons, lost.signal) : undefined
  const wanted = messages * daemons.length
  const total = async () => (await Promise.all(daemons.map(one => one.count()))).reduce((sum, n) => sum + n, 0)
  const talking = performance.now()
  const speaking = daemons.map(one => one.speak(messages, Number(values.pause)))
  for (const one of speaking)
    one.catch(error => {
      failure ??= error
    })
  const events = [
    ...Array.from({ length: Number(values.kills) }, (_, i) => ({ what: 'kill' as const, i })),
    ...Array.from({ length: Number(values.cuts) }, (_, i) => ({ what: 'cut' as const, i })),
  ].sort((a, b) => a.i - b.i)
  /** Faults come as the work goes on: each at its share of what is to be there. */
  for (const [place, { what, i }] of events.entries()) {
    const due = (wanted * daemons.length * (place + 1)) / (events.length + 2)
    await until(`${due} messages are stored`, async () => (await total()) >= due)
    const daemon = daemons[(i + (what === 'cut' ? 1 : 0)) % daemons.length] as Speaker
    note(`${what} ${daemon.name} at ${await total()} of ${wanted * daemons.length}`)
    await strike(what, daemon)
  }
  const talkEnded = new AbortController()
  const struck = Promise.all((['kill', 'cut'] as const).map(what => strikeEvery(what, daemons, talkEnded.signal)))
  const [forged] = daemons as [Speaker]
  const { daemon } = await forged.identity()
  const [peer] = await forged.peers()
  await forge(server.url.slice('nats://'.length), daemon, `${peer?.peer_id}`)
  await Promise.all(speaking).finally(() => talkEnded.abort())
  const [timedKills = 0, timedCuts = 0] = await struck
  if (timedKills + timedCuts > 0) note(`${timedKills} kills and ${timedCuts} cuts by the clock`)
  note(`all is said: ${daemons.map(one => `${one.name} ${one.said}`).join(', ')}`)
  await until('all daemons have all messages', async () => (await total()) >= wanted * daemons.length)
  const rate = Math.round((wanted * daemons.length) / ((performance.now() - talking) / 1000))
  note(`all is there: ${rate} messages/s stored by ${daemons.length} daemons`)
  // What would come twice comes now.
  await sleep(500)

  const kept = await Promise.all(daemons.map(one => one.all()))
  const [first] = kept as [Map<string, unknown>]
  for (const [n, one] of daemons.entries()) {
    const mine = kept[n] as Map<string, unknown>
    const heard = await one.heard()
    const wakes = await one.wakes()
    const lost = wanted - mine.size
    const different = new Set(heard)
    const doubled = heard.length - different.size
    const unheard = [...mine.keys()].filter(id => !different.has(id)).length
    note(`${one.name}: ${mine.size} messages, lost ${lost}, heard ${heard.length}, doubled ${doubled}, ${wakes} wakes`)
    if (lost !== 0 || doubled !== 0) faults.push(`${one.name}: ${lost} lost, ${doubled} doubled`)
    if (wakes > MAX_WAKES)
      faults.push(`${one.name}: the session that may be woken ${MAX_WAKES} times was woken ${wakes} times`)
    if (unheard !== 0) faults.push(`${one.name}: a session has not heard ${unheard} messages`)
    if (mine.has('msg_forged')) faults.push(`${one.name} has stored what was forged`)
    for (const [id, said] of mine)
      if (JSON.stringify(said) !== JSON.stringify(first.get(id)))
        faults.push(`${id} is ${JSON.stringify(said)} for ${one.name} and ${JSON.stringify(first.get(id))} for ada`)
  }
  lost.abort()
  if (losing) note(`links were down for a moment ${await losing} times`)
  for (const one of othersOf(forged)) {
    const isNamed = async () =>
      (await one.remote()).refusals.some(
        (refusal: { peer: string; reason_code: string }) =>
          refusal.peer === forged.name && refusal.reason_code === 'verification_failed',
      )
    // Its link may have been down when that was delivered to the others.
    await until(`${one.name} names a refusal of ${forged.name}`, isNamed)
    const text = await one.doctor()
    if (Math.abs(ahead) > 300 && one.name !== 'bob' && !text.includes('The clock of bob is '))
      faults.push(`doctor of ${one.name} does not say that a clock is off:\n${text}`)
    if (!text.includes(`Messages of ${forged.name} are refused`)) faults.push(`doctor of ${one.name} says:\n${text}`)
  }
  if (Number(values.offers) > 0) {
    const [origin, ...workers] = daemons as [Speaker, ...Speaker[]]
    const wantedOffers = {
      ...{ tasks: Number(values.offers), kills: Number(values['offer-kills']), cuts: Number(values['offer-cuts']) },
    }
    await proveOffers(origin, workers, wantedOffers, random, { note, until, fault: text => void faults.push(text) })
  }
} catch (error) {
  faults.push(error instanceof Error ? `${error.stack}` : `${error}`)
} finally {
  lost.abort()
  await Promise.allSettled(daemons.map(one => one.stop()))
  await server.close()
  hosts?.close()
}
for (const fault of faults.slice(0, 20)) console.error(fault)
if (faults.length > 0) process.exitCode = 1
