// Daemons of a realm lose no message and receive none twice, while one is killed and one is cut off in turn: `npm run prove:network -- --messages 600 --kills 2 --cuts 2`
//
// Three daemons, each a process with a home of its own, talk through one nats-server, each through a proxy that can be cut. `--messages`
// is what each of them says; all of them have to have what the other two said, once.
import { type ChildProcess, fork } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import net from 'node:net'
import os from 'node:os'
import path from 'node:path'
import { performance } from 'node:perf_hooks'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { identityOf, newSecret } from '../../plugins/reach/network-nats/proof.js'
import { NatsServer } from '../fixtures/nats-server.js'

const { values } = parseArgs({
  options: {
    messages: { type: 'string', default: '600' },
    kills: { type: 'string', default: '2' },
    cuts: { type: 'string', default: '2' },
    pause: { type: 'string', default: '5' },
    minutes: { type: 'string', default: '5' },
  },
})
const messages = Number(values.messages)
const names = ['ada', 'bob', 'cid']
const folder = mkdtempSync(path.join(os.tmpdir(), 'svc-proof-network-'))
const server = await NatsServer.start()

/** A way to the server that can be cut. */
class Way {
  readonly #sockets = new Set<net.Socket>()
  #isCut = false
  readonly #listener = net.createServer(socket => {
    if (this.#isCut) return socket.destroy()
    const further = net.connect(server.port, '127.0.0.1')
    for (const [from, to] of [
      [socket, further],
      [further, socket],
    ] as const) {
      this.#sockets.add(from)
      from
        .on('error', () => {})
        .on('close', () => {
          this.#sockets.delete(from)
          to.destroy()
        })
      from.pipe(to)
    }
  })

  open(): Promise<string> {
    return new Promise(resolve => {
      this.#listener.listen(0, '127.0.0.1', () =>
        resolve(`nats://127.0.0.1:${(this.#listener.address() as net.AddressInfo).port}`),
      )
    })
  }

  cut(isCut: boolean): void {
    this.#isCut = isCut
    if (isCut) for (const socket of this.#sockets) socket.destroy()
  }

  close(): void {
    this.cut(true)
    this.#listener.close()
  }
}

interface Count {
  readonly mine: number
  readonly received: number
  readonly different: number
}

class Daemon {
  readonly way = new Way()
  readonly secret = newSecret()
  count: Count = { mine: 0, received: 0, different: 0 }
  kills = 0
  #child: ChildProcess | undefined

  constructor(readonly name: string) {}

  get peer() {
    const { publicKey, fingerprint } = identityOf(this.secret)
    return { name: this.name, public_key: publicKey, fingerprint }
  }

  /** @param url where the way begins */
  start(url: string, peers: readonly Daemon['peer'][]): void {
    const place = (what: string) => mkdtempSync(path.join(folder, `${this.name}-${what}-`))
    this.#order ??= {
      name: this.name,
      home: place('home'),
      root: place('root'),
      secret: this.secret,
      url,
      peers,
      messages,
      pauseMs: Number(values.pause),
    }
    const child = fork(path.join(import.meta.dirname, 'network/half.ts'), [JSON.stringify(this.#order)], {
      execArgv: ['--import', 'tsx'],
      stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    })
    child.on('message', count => {
      this.count = count as Count
    })
    child.once('exit', code => {
      if (code !== null && code !== 0) fail(`${this.name} ended with ${code}`)
    })
    this.#child = child
  }
  #order: object | undefined

  async kill(): Promise<void> {
    const child = this.#child
    if (!child) return
    const ended = new Promise(resolve => child.once('exit', resolve))
    child.kill('SIGKILL')
    await ended
    this.kills++
  }

  restart(): void {
    this.start('', [])
  }
}

let failure: string | undefined
function fail(text: string): void {
  failure ??= text
}

const daemons = names.map(name => new Daemon(name))
for (const daemon of daemons) {
  const url = await daemon.way.open()
  daemon.start(
    url,
    daemons.filter(other => other !== daemon).map(other => other.peer),
  )
}
const wanted = messages * (names.length - 1)
const isDone = () => daemons.every(({ count }) => count.mine >= messages && count.different >= wanted)
const all = () => daemons.reduce((sum, { count }) => sum + count.different, 0)
const begun = performance.now()
const isLate = () => performance.now() - begun > Number(values.minutes) * 60_000

/** Faults come as the work goes on: each at its share of what is to be received. */
const faults = [
  ...Array.from({ length: Number(values.kills) }, (_, i) => ({ what: 'kill' as const, i })),
  ...Array.from({ length: Number(values.cuts) }, (_, i) => ({ what: 'cut' as const, i })),
].sort((a, b) => a.i - b.i)
for (const [place, { what, i }] of faults.entries()) {
  const due = (wanted * names.length * (place + 1)) / (faults.length + 2)
  while (all() < due && !isLate() && failure === undefined) await sleep(20)
  const daemon = daemons[(i + (what === 'cut' ? 1 : 0)) % daemons.length] as Daemon
  console.log(`${what} ${daemon.name} at ${all()} of ${wanted * names.length}`)
  if (what === 'kill') {
    await daemon.kill()
    daemon.restart()
  } else {
    daemon.way.cut(true)
    await sleep(1000)
    daemon.way.cut(false)
  }
}
while (!isDone() && !isLate() && failure === undefined) await sleep(50)
const seconds = (performance.now() - begun) / 1000
// What would come twice comes now.
await sleep(1000)
for (const { name, count } of daemons) {
  const lost = wanted - count.different
  const doubled = count.received - count.different
  console.log(`${name}: said ${count.mine}, received ${count.received}, lost ${lost}, doubled ${doubled}`)
  if (lost !== 0 || doubled !== 0 || count.mine !== messages) fail(`${name} has not what it should have`)
}
console.log(`${Math.round(all() / seconds)} messages/s received by ${names.length} daemons`)
for (const daemon of daemons) {
  await daemon.kill()
  daemon.way.close()
}
await server.close()
rmSync(folder, { recursive: true, force: true })
if (failure !== undefined) {
  console.error(failure)
  process.exitCode = 1
}
