import {
  attackLive,
  attackStart,
  FileScene,
  type LivePlace,
  livePlaces,
  type StartPlace,
  startPlaces,
} from '../../fixtures/file-places.js'
import { type HostileFile, hostileFiles } from '../../fixtures/hostile-files.js'
import { type Chance, chance } from '../library/chance.js'
import type { Attack } from './attack.js'

/** Cases that one daemon is asked before it is stopped and started on something. */
const LIVE_IN_A_ROW = 8

type Cell<P> = readonly [place: P, hostile: HostileFile]

/** All pairs of a place and a hostile file, in random order. */
function cells<P>(places: readonly P[], random: Chance): Cell<P>[] {
  const all = places.flatMap(place => hostileFiles.map(hostile => [place, hostile] as const))
  for (let at = all.length - 1; at > 0; at--) {
    const other = random.int(at + 1)
    ;[all[at], all[other]] = [all[other] as Cell<P>, all[at] as Cell<P>]
  }
  return all
}

/** Two places at once, where neither hides the other. */
async function attackTwo(scene: FileScene, [place, hostile]: Cell<LivePlace>, other: Cell<LivePlace> | undefined) {
  // Of two in one extension or one agent only the first that is read would be told of.
  const owner = (file: string) => [scene.kit, scene.agent, scene.home()].find(folder => file.startsWith(folder)) ?? file
  if (!other || owner(other[0].file(scene)) === owner(place.file(scene))) return attackLive(scene, place, hostile)
  return (await Promise.all([attackLive(scene, place, hostile), attackLive(scene, ...other)])).flat()
}

/** Every place that reads a file against every kind of file that is none, in random order, some of them two at a time. */
export const attack: Attack = {
  name: 'files',
  holds: 'whatever lies in the place of a file is answered for in time, and nobody else waits for it',
  size: { ci: 60, full: (livePlaces.length + startPlaces.length) * hostileFiles.length, unit: 'files' },
  async run({ seed, cases, say }) {
    const random = chance('files', seed)
    const live = cells(livePlaces, random)
    const starts = cells<StartPlace>(startPlaces, random)
    const scene = new FileScene()
    const wrong: string[] = []
    let done = 0
    let startCount = 0
    try {
      await scene.open()
      while (done < cases && live.length + starts.length > 0) {
        for (const one of live.splice(0, LIVE_IN_A_ROW)) {
          const other = random() < 0.3 ? live.pop() : undefined
          wrong.push(...(await attackTwo(scene, one, other)))
          done += other ? 2 : 1
          if (done >= cases) break
        }
        const [start] = starts.splice(0, 1)
        if (!start || done >= cases) continue
        await scene.svc('daemon', 'stop')
        wrong.push(...(await attackStart(scene, ...start)))
        done++
        startCount++
        if (!(await scene.start()).ok) return [...wrong, 'no daemon starts on the home any more']
      }
      say(`${done} files, ${startCount} of them in the way of a start`)
    } finally {
      await scene.close()
    }
    return wrong
  },
}
