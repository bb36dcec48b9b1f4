import { type LivenessSample, livenessFile, MOST_LIVENESS_BYTES, olderFile } from '../liveness-file.js'
import { endOfFile } from './files.js'

/** The stored samples, oldest first. */
export async function readLiveness(home: string): Promise<LivenessSample[]> {
  const file = livenessFile(home)
  const texts = await Promise.all([olderFile(file), file].map(name => endOfFile(name, MOST_LIVENESS_BYTES)))
  return texts.flatMap(found => (found?.text ?? '').split('\n').flatMap(line => sampleOf(line) ?? []))
}

/** Copies only numbers and the time, because the file may contain anything. */
function sampleOf(line: string): LivenessSample | undefined {
  try {
    const raw = Object(JSON.parse(line)) as Record<string, unknown>
    const at = typeof raw.t === 'string' ? Date.parse(raw.t) : Number.NaN
    if (Number.isNaN(at)) return undefined
    const numbers = Object.entries(raw).filter(([name, value]) => NAMES.has(name) && typeof value === 'number')
    return { t: new Date(at).toISOString(), ...Object.fromEntries(numbers) } as unknown as LivenessSample
  } catch {
    return undefined
  }
}

const NAMES = new Set(['delay_ms', 'rss_mb', 'heap_mb', 'handles', 'descriptors', 'oversize'])
