// Two daemons without listeners on one NATS server, and two bare clients beside them: node network-hop-process.ts
import { randomBytes } from 'node:crypto'
import { AckPolicy, jetstream, jetstreamManager } from '@nats-io/jetstream'
import { connect } from '@nats-io/transport-node'
import { identityOf, isSigned, newSecret, type Proof, signed } from '../../plugins/reach/network-nats/proof.js'
import { NatsServer } from '../fixtures/nats-server.js'
import { type Half, openRealm } from '../fixtures/network-halves.js'
import { answer } from './child.js'
import { median } from './measure.js'

const STREAM = 'bench_bare'
const BARE_SUBJECT = 'bench.bare'
/** Bytes of an envelope with its signature. */
const ENVELOPE_BYTES = 700

let server: NatsServer
let halves: Half[] = []
let bare: (texts: readonly string[]) => Promise<void>

/** What is said until it has arrived. */
class Arrivals {
  readonly #waiting = new Map<string, () => void>()

  of(id: string): Promise<void> {
    return new Promise(resolve => this.#waiting.set(id, resolve))
  }

  came(id: string): void {
    this.#waiting.get(id)?.()
    this.#waiting.delete(id)
  }
}

/** Single rounds: a machine that has much else to do holds up a few of them for long. */
async function middle(rounds: number, round: () => Promise<unknown>): Promise<number> {
  const times: number[] = []
  for (let n = 0; n < rounds; n++) {
    const began = performance.now()
    await round()
    times.push(performance.now() - began)
  }
  return median(times)
}

const handlers = {
  async boot(): Promise<void> {
    server = await NatsServer.start()
    halves = await openRealm(server.url)
    const [ada, bob] = halves as [Half, Half]
    const connection = await connect({ servers: server.url })
    const manager = await jetstreamManager(connection)
    await manager.streams.add({ name: STREAM, subjects: [BARE_SUBJECT] })
    await manager.consumers.add(STREAM, { durable_name: 'reader', ack_policy: AckPolicy.Explicit })
    const client = jetstream(connection)
    const arrivals = new Arrivals()
    const reader = await (await client.consumers.get(STREAM, 'reader')).consume({
      max_messages: 64,
      callback: message => {
        const id = message.headers?.get('Nats-Msg-Id') ?? ''
        // As a daemon does: what came is durable before it is acknowledged, and stored once by its id.
        void bob.keepPlain(id, message.string()).then(() => {
          message.ack()
          arrivals.came(id)
        })
      },
    })
    void reader.closed()
    bare = async texts => {
      await Promise.all(
        texts.map(async text => {
          const id = randomBytes(8).toString('hex')
          const came = arrivals.of(id)
          const data = text.padEnd(ENVELOPE_BYTES, '.')
          await ada.keepPlain(id, data)
          await client.publish(BARE_SUBJECT, data, { msgID: id })
          await came
        }),
      )
    }
  },

  /** The middle one of so many rounds in milliseconds: messages, `atOnce` at a time, from a daemon's store to the other's. */
  messages(rounds: number, atOnce: number): Promise<number> {
    const [ada, bob] = halves as [Half, Half]
    return middle(rounds, () =>
      Promise.all(
        Array.from({ length: atOnce }, async (_, n) => {
          const id = `msg_${randomBytes(8).toString('hex')}`
          const came = bob.hears(id)
          await ada.say(`message ${n} of a peer`, { id })
          await came
        }),
      ),
    )
  },

  /** The same with bare clients: a row, a publication that is acknowledged, a row of its id, an acknowledgement. */
  bare(rounds: number, atOnce: number): Promise<number> {
    return middle(rounds, () => bare(Array.from({ length: atOnce }, (_, n) => `message ${n}`)))
  },

  /** A signature and its verification, which bare clients do without. */
  proofs(rounds: number): Promise<number> {
    const identity = identityOf(newSecret())
    const content = { body: { text: '.'.repeat(ENVELOPE_BYTES / 2) } }
    return middle(rounds, async () => {
      const { proof, ...rest } = signed(content, identity, { realm: 'test', at: 0, attempt: 0 })
      if (!isSigned(rest, proof as Proof, identity.publicKey)) throw new Error('the signature is not valid')
    })
  },

  async close(): Promise<void> {
    for (const half of halves) await half.close()
    await server.close()
  },
}
export type NetworkHopProcess = typeof handlers

answer(handlers)
