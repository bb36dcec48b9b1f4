// One daemon of the proof, in a process of its own that the proof kills: says its messages one after the other, those that an earlier
// process of the same home did not get to say included.
import { openHalf } from '../../fixtures/network-halves.js'

interface Order {
  readonly name: string
  readonly home: string
  readonly root: string
  readonly secret: string
  readonly url: string
  readonly peers: readonly { readonly name: string; readonly public_key: string; readonly fingerprint: string }[]
  readonly messages: number
  readonly pauseMs: number
}

const order = JSON.parse(process.argv[2] as string) as Order
const half = await openHalf(order.name, order)
const status = await half.status()
for (const peer of order.peers)
  if (!status.peers.some(({ name }: { name: string }) => name === peer.name)) await half.ask('POST', '/peers', peer)
if (status.channels.length === 0) await half.share()
if (status.state === 'off') await half.join(order.url)

const count = () => {
  const mine = half.sent()
  return { mine, ...half.tally() }
}
const report = setInterval(() => process.send?.(count()), 200)
process.once('disconnect', () => process.exit(0))
for (let i = half.sent(); i < order.messages; i++) {
  await half.say(`message ${i}`, { id: `msg_${order.name}_${i}` })
  if (order.pauseMs > 0) await new Promise(resolve => setTimeout(resolve, order.pauseMs))
}
void report
