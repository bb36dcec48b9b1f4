import { seededIds } from '../../../testing/seeded-ids.js'
import { type OraclePolicy, type OracleWindow, simulate } from './oracle.js'
import { openWorld } from './world.js'

/** Changes of clocks north and south of the equator, of half an hour, around midnight, none; offsets of quarters. */
export const ZONES = [
  'Europe/Paris',
  'America/New_York',
  'Australia/Lord_Howe',
  'America/Santiago',
  'Asia/Beirut',
  'Africa/Cairo',
  'Asia/Kathmandu',
  'Pacific/Chatham',
  'America/Havana',
  'Atlantic/Azores',
  'America/St_Johns',
  'Australia/Sydney',
  'Pacific/Auckland',
  'Europe/Dublin',
  'Africa/Casablanca',
  'America/Asuncion',
  'Asia/Jerusalem',
  'Europe/Chisinau',
  'America/Nuuk',
  'Antarctica/Troll',
  'UTC',
  'Asia/Tokyo',
  'Asia/Kolkata',
  'America/Los_Angeles',
  'America/Phoenix',
  'America/Anchorage',
  'Pacific/Honolulu',
  'America/Sao_Paulo',
  'America/Caracas',
  'Europe/London',
  'Europe/Moscow',
  'Europe/Istanbul',
  'Asia/Tehran',
  'Asia/Yangon',
  'Australia/Eucla',
  'Australia/Adelaide',
  'Pacific/Kiritimati',
  'Pacific/Pago_Pago',
  'Africa/Johannesburg',
  'Antarctica/Casey',
]
/** Small, so that it is reached. */
const CAP = 3

export interface Comparison {
  readonly zones: number
  readonly days: number
  readonly seed: number
  readonly start: number
}

/** Lets a daemon and the oracle run through the same time; `wrong` says where they differ. */
export async function compare({ zones, days, seed, start }: Comparison): Promise<{ wakes: number; wrong: string[] }> {
  const policies = policiesOf(zones, seed)
  const world = await openWorld({ start, config: { max_wakes_per_cycle: CAP } })
  try {
    for (const policy of policies) await world.agent(policy.id, textOf(policy))
    for (const { id } of policies) await world.session(id, id)
    await world.passTo(start + days * 24 * 60 * 60_000)
    const expected = new Set(simulate(policies, start, days, CAP).map(({ id, at }) => lineOf(id, at)))
    const actual = new Set(world.prompts.map(({ id, at }) => lineOf(id, at)))
    const missing = [...expected].filter(line => !actual.has(line)).map(line => `missing ${line}`)
    const surplus = [...actual].filter(line => !expected.has(line)).map(line => `not expected ${line}`)
    return { wakes: world.prompts.length, wrong: [...missing, ...surplus].sort() }
  } finally {
    await world.close()
  }
}

const lineOf = (id: string, at: number) => `${new Date(at).toISOString()} ${id}`

/** One policy a zone; the first of chance have windows around the hours in which clocks are changed. */
function policiesOf(zones: number, seed: number): OraclePolicy[] {
  const dice = seededIds(seed)
  const below = (n: number) => Math.floor(dice.random() * n)
  const time = () => `${String(below(24)).padStart(2, '0')}:${['00', '15', '30', '41'][below(4)]}`
  return ZONES.slice(0, zones).map((timezone, index) => {
    const window = (): OracleWindow => {
      const start = time()
      for (;;) {
        const end = time()
        if (end !== start) return { timezone, start, end }
      }
    }
    const early: OracleWindow = { timezone, start: '00:30', end: ['01:15', '02:30', '03:30'][below(3)] as string }
    return {
      id: `agent${String(index).padStart(2, '0')}`,
      intervalMinutes: [15, 30, 45, 90, 240][below(5)] as number,
      active: [early, window(), ...(below(3) === 0 ? [{ ...window(), timezone: 'Europe/Paris' }] : [])],
      quiet: below(2) === 0 ? [window()] : [],
    }
  })
}

function textOf({ intervalMinutes, active, quiet }: OraclePolicy): string {
  const preferences = { min_interval: `${intervalMinutes}m`, active_hours: active, quiet_windows: quiet }
  return `---\nenabled: true\npreferences: ${JSON.stringify(preferences)}\n---\nLook around.\n`
}
