import { execFileSync } from 'node:child_process'
import path from 'node:path'
import { openStore } from '../../../kernel/store/index.js'
import { openJournal } from '../../../plugins/platform/journals/open.js'
import { chance } from '../library/chance.js'
import { prepare, recordOf, wrongWith } from './model.js'
import { inFolder, largest, onCopy, runChild } from './processes.js'

/** Kills of one database before the next begins with a new one. */
export const KILLS_A_LIFE = 10

/** What is wrong with a recovered copy of the database; the files themselves stay as the kill left them. */
export async function wrongWithFolder(folder: string, seed: number, told: number): Promise<string | undefined> {
  const stock = await onCopy(folder, async copy =>
    execFileSync('sqlite3', ['svc.db', 'pragma integrity_check'], { cwd: copy, encoding: 'utf8' }).trim(),
  )
  if (stock !== 'ok') return `sqlite3 says: ${stock}`
  return onCopy(folder, async copy => {
    const store = await openStore({ path: path.join(copy, 'svc.db'), now: () => 0 })
    await prepare(store)
    const wrong = wrongWith(store, seed, told)
    await store.close()
    return wrong
  })
}

/** Kills a writer of one database again and again (rules 1, 2, 9, 10). */
export function killStore(script: string, seed: number, life: number, kills: number): Promise<string | undefined> {
  return inFolder(async folder => {
    const random = chance(seed, 'kills', life)
    let told = 0
    for (let kill = 0; kill < kills; kill++) {
      const { after, late } = moment(random)
      const ended = await runChild(script, ['store', folder, seed, life * KILLS_A_LIFE + kill], killAt(after, late))
      told = Math.max(told, largest(ended.lines))
      const where = `kill ${kill}, ${after} lines and ${late.toFixed(1)} ms after the start, ${told} acknowledged`
      if (ended.signal !== 'SIGKILL') return `${where}: it ended by itself: ${ended.errors}`
      try {
        const wrong = await wrongWithFolder(folder, seed, told)
        if (wrong !== undefined) return `${where}: ${wrong}`
      } catch (error) {
        return `${where}: ${error}`
      }
    }
    return undefined
  })
}

/** Kills a writer of one journal again and again: what it synced is there, and every start raises the generation. */
export function killJournal(script: string, seed: number, life: number, kills: number): Promise<string | undefined> {
  return inFolder(async folder => {
    const random = chance(seed, 'journal kills', life)
    let told = 0
    let generation = 0
    for (let kill = 0; kill < kills; kill++) {
      const { after, late } = moment(random)
      const ended = await runChild(script, ['journal', folder, seed, life * KILLS_A_LIFE + kill], killAt(after, late))
      told = Math.max(told, largest(ended.lines))
      const where = `kill ${kill} of a journal, ${after} lines and ${late.toFixed(1)} ms after the start, ${told} synced`
      if (ended.signal !== 'SIGKILL') return `${where}: it ended by itself: ${ended.errors}`
      const now = Number(ended.lines.find(line => line.startsWith('generation'))?.split(' ')[1] ?? generation)
      const appended = ended.lines.some(line => Number(line) > 0)
      if (now < generation) return `${where}: the generation went from ${generation} to ${now}`
      const wrong = await onCopy(folder, copy =>
        wrongWithRecords(path.join(copy, 'journal'), seed, told, appended ? now : undefined),
      )
      if (wrong !== undefined) return `${where}: ${wrong}`
      generation = now
    }
    return undefined
  })
}

async function wrongWithRecords(dir: string, seed: number, told: number, before?: number): Promise<string | undefined> {
  const journal = await openJournal({ dir })
  const records = await journal.read(1, Infinity)
  await journal.close()
  if (journal.last < told || records.length !== journal.last) return `${records.length} of ${told} records are there`
  if (before !== undefined && journal.generation <= before) return `generation ${before} was not raised`
  let last = 0
  for (const { sequence, payload } of records) {
    const generation = Number(Buffer.from(payload).toString().split(' ')[0])
    if (generation < last || !recordOf(seed, generation, sequence).equals(payload))
      return `record ${sequence} is not what was appended`
    last = generation
  }
  return undefined
}

/** Mostly some acknowledgements into the work, at times while it opens and recovers. */
function moment(random: ReturnType<typeof chance>): { after: number; late: number } {
  return random() < 0.15 ? { after: 1, late: random() * 150 } : { after: 1 + random.int(120), late: random() * 4 }
}

function killAt(after: number, lateMs: number): (lines: number, kill: () => void) => void {
  let killing = false
  return (lines, kill) => {
    if (lines < after || killing) return
    killing = true
    setTimeout(kill, lateMs)
  }
}
