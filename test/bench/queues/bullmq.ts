import { createRequire } from 'node:module'
import path from 'node:path'
import { LEASE_MS, type Queue, times, WORK } from './queue.js'

/** What is used of BullMQ and of its client of Redis. */
interface Job {
  extendLock(token: string, ms: number): Promise<number>
  moveToCompleted(result: unknown, token: string, fetchNext: boolean): Promise<unknown>
}
interface BullMq {
  Queue: new (
    name: string,
    options: object,
  ) => { addBulk(jobs: readonly object[]): Promise<unknown>; close(): Promise<void> }
  Worker: new (
    name: string,
    processor: undefined,
    options: object,
  ) => {
    getNextJob(token: string, options: object): Promise<Job | undefined>
    close(): Promise<void>
  }
}

const AT_ONCE = 1000

/** BullMQ on the Redis behind a Unix socket: a worker whose jobs are processed by hand, as many at once as there are claimants. */
export async function bullQueue(bench: string, socket: string): Promise<Queue> {
  const require = createRequire(path.join(bench, 'package.json'))
  const bull = require('bullmq') as BullMq
  const { Redis } = require('ioredis') as { Redis: new (options: object) => { quit(): Promise<unknown> } }
  const connection = new Redis({ path: socket, maxRetriesPerRequest: null })
  const queue = new bull.Queue('tasks', { connection })
  const worker = new bull.Worker('tasks', undefined, {
    connection,
    autorun: false,
    lockDuration: LEASE_MS,
    skipStalledCheck: true,
  })
  return {
    fill: async count => {
      await times(Math.ceil(count / AT_ONCE), 1, () =>
        queue.addBulk(
          Array.from({ length: Math.min(AT_ONCE, count) }, () => ({ name: 'task', data: { title: WORK } })),
        ),
      )
    },
    cycle: async n => {
      const token = `claimant-${n}`
      const job = await worker.getNextJob(token, { block: false })
      if (!job) throw new Error('BullMQ: there is no job')
      if ((await job.extendLock(token, LEASE_MS)) !== 1) throw new Error('BullMQ: the lock was not extended')
      await job.moveToCompleted('', token, false)
    },
    close: async () => {
      await worker.close()
      await queue.close()
      await connection.quit()
    },
  }
}
