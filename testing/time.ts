import { VirtualClock } from '../kernel/index.js'

/** Milliseconds of real time between two looks at what is waited for. */
const STEP_MS = 1

/** Time that goes by only while something is waited for, so that whoever looks sees every timer that is pending. */
export class WaitingTime {
  readonly clock = new VirtualClock(Date.now())

  /** Lets time pass until the work is done: as much as really did, or `pace` times that. */
  async during<T>(work: Promise<T>, pace = 1): Promise<T> {
    let over = false
    const done = work.finally(() => {
      over = true
    })
    done.catch(() => {})
    const began = performance.now()
    let passed = 0
    while (!over) {
      await new Promise(resolve => setTimeout(resolve, STEP_MS))
      // Whole milliseconds, as the system's wall clock has them.
      const step = Math.floor((performance.now() - began) * pace) - passed
      if (!over) await this.clock.advance(step)
      passed += step
    }
    return done
  }
}
