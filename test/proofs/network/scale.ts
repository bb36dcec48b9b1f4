// Measures what daemons of a realm cost their server, for docs/scale.md: `node --import tsx test/proofs/network/scale.ts --consumers 2000 --connections 500`
import { readFileSync } from 'node:fs'
import { performance } from 'node:perf_hooks'
import { parseArgs } from 'node:util'
import { AckPolicy, jetstream, jetstreamManager } from '@nats-io/jetstream'
import { connect } from '@nats-io/transport-node'
import { NatsServer } from '../../fixtures/nats-server.js'

const { values } = parseArgs({
  options: {
    consumers: { type: 'string', default: '2000' },
    connections: { type: 'string', default: '500' },
    messages: { type: 'string', default: '20000' },
  },
})
const [consumers, connections, messages] = [values.consumers, values.connections, values.messages].map(Number) as [
  number,
  number,
  number,
]
const server = await NatsServer.start()
/** KiB of memory that the server has. */
const rss = () => Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${server.pid}/status`, 'utf8'))?.[1])
const servers = server.url.slice('nats://'.length)
const open = () => connect({ servers })
/** Does something many times, some at once; returns seconds. */
async function many(count: number, work: (i: number) => Promise<unknown>, atOnce = 64): Promise<number> {
  const startedAt = performance.now()
  for (let i = 0; i < count; i += atOnce)
    await Promise.all(Array.from({ length: Math.min(atOnce, count - i) }, (_, k) => work(i + k)))
  return (performance.now() - startedAt) / 1000
}

const connection = await open()
const manager = await jetstreamManager(connection)
const client = jetstream(connection)
await manager.streams.add({ name: 'svc_scale_messages', subjects: ['svc.scale.m.*.*'] })
const say = (key: string, value: number, unit: string) => console.log(`${key}: ${value.toFixed(1)} ${unit}`)
say('server alone', rss() / 1024, 'MiB')

const payload = new Uint8Array(1024).fill(97)
const publish = (i: number) => client.publish(`svc.scale.m.team.d${i % 16}`, payload, { msgID: `m${i}` })
say('publish, 1 KiB, 64 at once', messages / (await many(messages, publish)), 'messages/s')
const published = rss()
say('server with messages', published / 1024, 'MiB')

/** Of one daemon: a channel that it shares, which 10 daemons have in common. */
const add = (i: number) =>
  manager.consumers.add('svc_scale_messages', {
    durable_name: `d${i}_c${Math.floor(i / 10)}`,
    filter_subject: `svc.scale.m.c${Math.floor(i / 10)}.*`,
    ack_policy: AckPolicy.Explicit,
  })
const added = await many(consumers, add, 16)
say('consumers', consumers / added, 'made/s')
const withConsumers = rss()
say('a consumer', (withConsumers - published) / consumers, 'KiB')

const opened: Awaited<ReturnType<typeof open>>[] = []
await many(connections, async () => opened.push(await open()), 16)
say('a connection', (rss() - withConsumers) / connections, 'KiB')

const toChannel = (i: number) => client.publish('svc.scale.m.c0.d0', payload, { msgID: `n${i}` })
say('publish beside these consumers', 2000 / (await many(2000, toChannel)), 'messages/s')
const began = performance.now()
const readers = Array.from({ length: 10 }, async (_, i) => {
  const consumer = await jetstream(opened[i] ?? connection).consumers.get('svc_scale_messages', `d${i}_c0`)
  for (let read = 0; read < 2000; ) {
    for await (const message of await consumer.fetch({ max_messages: 64, expires: 5000 })) {
      message.ack()
      read++
    }
  }
})
await Promise.all(readers)
say('read by 10 daemons of a channel', 20_000 / ((performance.now() - began) / 1000), 'messages/s')
for (const one of [...opened, connection]) await one.close()
await server.close()
