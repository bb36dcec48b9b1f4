// Claimants of one queue, a process of its own; what it does is asked for by name.
import { answer } from './child.js'
import { beanstalkdQueue } from './queues/beanstalkd.js'
import { bullQueue } from './queues/bullmq.js'
import { postgresQueue } from './queues/postgres.js'
import { type Queue, times } from './queues/queue.js'
import { svcQueue } from './queues/svc.js'

/** Which queue, and where it is. */
export type QueueAt =
  | { readonly kind: 'svc'; readonly socket: string; readonly token: string; readonly sessions: readonly string[] }
  | { readonly kind: 'postgres'; readonly bench: string; readonly folder: string; readonly claimants: number }
  | { readonly kind: 'bullmq'; readonly bench: string; readonly socket: string }
  | { readonly kind: 'beanstalkd'; readonly port: number; readonly claimants: number }

let queue: Queue

const handlers = {
  async open(at: QueueAt): Promise<void> {
    if (at.kind === 'svc') queue = svcQueue(at.socket, at.token, at.sessions)
    else if (at.kind === 'postgres') queue = await postgresQueue(at.bench, at.folder, at.claimants)
    else if (at.kind === 'bullmq') queue = await bullQueue(at.bench, at.socket)
    else queue = await beanstalkdQueue(at.port, at.claimants)
  },
  fill: (count: number) => queue.fill(count),
  /** Cycles a second. */
  async run(claimants: number, cycles: number): Promise<number> {
    const began = performance.now()
    await times(cycles, claimants, n => queue.cycle(n))
    return (cycles * 1000) / (performance.now() - began)
  },
  /** Completions with the next claim a second. The claimants keep what they have claimed at the end. */
  async runNext(claimants: number, count: number): Promise<number> {
    const next = queue.next ?? (() => Promise.reject(new Error('this queue does not complete and claim at once')))
    const began = performance.now()
    await times(count, claimants, next)
    return (count * 1000) / (performance.now() - began)
  },
  close: () => queue.close(),
}
export type TasksLoad = typeof handlers
answer(handlers)
