import { Dice } from '../../kernel/fixtures/dice.js'
import { History } from '../../plugins/work/tasks/history.js'
import { scene } from '../../plugins/work/tasks/scene.js'
import { StatusHistory } from '../../plugins/work/tasks/status-history.js'

/** Histories that follow each other in one home: a start costs more than a history. */
const PER_HOME = 25

/** One history of so many is followed by one of statuses, in a home of its own. */
const STATUSES_EVERY = 5

/** Random histories of claims, heartbeats, expiries, kills and restarts on a virtual clock, some at once. */
export async function playHistories(
  count: number,
  { steps, seed, lanes, note }: { steps: number; seed: number; lanes: number; note: (done: number) => void },
): Promise<string[]> {
  const wrong: string[] = []
  let [begun, done] = [0, 0]
  const lane = async () => {
    while (begun < count) {
      let world = await scene()
      try {
        for (let n = 0; n < PER_HOME && begun < count; n++) {
          const own = seed + begun++
          const statuses = new StatusHistory(new Dice(own), steps)
          const history = new History(new Dice(own), steps)
          try {
            world = await history.playIn(world)
            if (own % STATUSES_EVERY === 0) await statuses.play()
          } catch (error) {
            wrong.push(`history ${own}: ${(error as Error).message}`)
            world = history.world
            // What it has left behind would disturb the next one.
            break
          } finally {
            done++
            if (done % 100 === 0 || done === count) note(done)
          }
        }
      } finally {
        await world.close()
      }
    }
  }
  await Promise.all(Array.from({ length: Math.min(lanes, count) }, lane))
  return wrong
}
