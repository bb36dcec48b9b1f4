import { Dice } from '../../test/kernel/fixtures/dice.js'
import { History } from '../../test/plugins/tasks/history.js'
import { scene } from '../../test/plugins/tasks/scene.js'

/** Histories that follow each other in one home: a start costs more than a history. */
const PER_HOME = 25

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
          const history = new History(new Dice(own), steps)
          try {
            world = await history.playIn(world)
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
