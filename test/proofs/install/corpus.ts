import { gzipSync } from 'node:zlib'
import { limits } from '../../../plugins/delivery/installer/source/limits.js'
import { END, entry, manifest, pax, sealed } from '../../plugins/delivery/installer/tarball.js'
import { type Chance, chance } from '../library/chance.js'

/** How an archive came to be. */
export type Make = 'harmless' | 'hostile' | 'mutated' | 'damaged'

export interface Sample {
  readonly make: Make
  readonly bytes: Buffer
}

/** What names are made of; everything absolute lies in the arena, also for the reader that believes all. */
const parts = (arena: string) => [
  ...[
    '..',
    '..',
    '.',
    '',
    'a',
    'A',
    'b',
    'bin',
    'canary',
    'one',
    'extension.toml',
    'EXTENSION.TOML',
    '.staging',
    '.git',
  ],
  ...[
    'e\u0301',
    '\u00e9',
    '\u212a',
    'K',
    'a\\b',
    '..\\..',
    'C:',
    'nul',
    'a.',
    'a ',
    'a\nb',
    '\u202e',
    '\ufeff',
    'x'.repeat(99),
  ],
  `${arena}/canary`,
]
const FLAGS = ['0', '0', '0', '\0', '5', '1', '2', '3', '4', '6', '7', 'x', 'g', 'L', 'K', 'S', 'N', 'D', 'V', 'M', 'Z']
const PAX_KEYS = [
  'path',
  'path',
  'linkpath',
  'size',
  'mtime',
  'GNU.sparse.name',
  'GNU.sparse.major',
  'mode',
  'comment',
  'type',
]

/** The archive of that number: the same for the same seed. Its names aim at `<arena>/canary`. */
export function sample(seed: number, index: number, arena: string): Sample {
  const dice = chance('archive', seed, index)
  const roll = dice()
  if (roll < 0.05) return { make: 'harmless', bytes: pack(harmless(dice)) }
  if (roll < 0.5)
    return { make: 'hostile', bytes: pack(Buffer.concat([own(dice), ...hostile(dice, arena), end(dice)])) }
  if (roll < 0.85) return { make: 'mutated', bytes: pack(mutate(dice, mixed(dice, arena))) }
  return { make: 'damaged', bytes: damage(dice, pack(mixed(dice, arena))) }
}

const pack = (tar: Buffer) => gzipSync(tar, { level: 1 })
const own = (dice: Chance) => entry({ path: dice() < 0.9 ? 'extension.toml' : 'demo/extension.toml', body: manifest() })
const mixed = (dice: Chance, arena: string) =>
  dice() < 0.5 ? harmless(dice) : Buffer.concat([own(dice), ...hostile(dice, arena), END])

function harmless(dice: Chance): Buffer {
  const wrapped = dice() < 0.3 ? 'demo-1/' : ''
  const files = Array.from({ length: dice.int(5) }, (_, i) => {
    const path = `${wrapped}${'d/'.repeat(dice.int(4))}file-${i}`
    const body = 'b'.repeat(dice.int(1500))
    return dice() < 0.3
      ? Buffer.concat([pax({ path: `${path}-\u00fc` }), entry({ path: 'short', body })])
      : entry({ path, body, mode: dice.of([0o644, 0o755]) })
  })
  return Buffer.concat([entry({ path: `${wrapped}extension.toml`, body: manifest() }), ...files, END])
}

/** Entries that each try something; at times something large. */
function hostile(dice: Chance, arena: string): Buffer[] {
  return Array.from({ length: 1 + dice.int(4) }, () => {
    if (dice() < 0.02) return entry({ path: 'zeros', body: Buffer.alloc(limits.ratioFrom * 2) })
    const path = nameOf(dice, arena)
    if (dice() < 0.15) return link(dice, arena, path)
    const body = dice() < 0.5 ? `${nameOf(dice, arena)}\0` : 'x'.repeat(dice.int(700))
    const it = entry({
      path,
      body,
      flag: dice() < 0.6 ? '0' : dice.of(FLAGS),
      linkpath: dice() < 0.05 ? nameOf(dice, arena).slice(0, 99) : '',
      mode: dice.of([0o644, 0o755, 0o4755, 0o7777]),
      ...(dice() < 0.1 ? { size: dice.int(5000) } : {}),
    })
    if (dice() < 0.8) return it
    return Buffer.concat([pax({ [dice.of(PAX_KEYS)]: nameOf(dice, arena) }, dice.of(['x', 'x', 'g'])), it])
  })
}

/** A link to the canaries, or to where they are, and a file behind it. */
function link(dice: Chance, arena: string, path: string): Buffer {
  const flag = dice.of(['1', '2'])
  const up = '../'.repeat(1 + dice.int(6))
  const linkpath = dice.of([`${arena}/canary`, `${up}canary`, `${arena}/canary/one`]).slice(0, 100)
  const name = dice.of(['link', path.slice(0, 60)])
  return Buffer.concat([
    entry({ path: name, flag, linkpath }),
    entry({ path: `${name}/one`.slice(0, 100), body: 'owned' }),
  ])
}

function nameOf(dice: Chance, arena: string): string {
  const up = dice() < 0.3 ? '../'.repeat(1 + dice.int(6)) : ''
  const names = Array.from({ length: 1 + dice.int(4) }, () => dice.of(parts(arena)))
  return `${up}${names.join('/')}${dice.of(['', '', '', '', '/canary/one', '/'])}`
}

/** Half an end, none, one with something behind it. */
function end(dice: Chance): Buffer {
  return dice.of([
    END,
    END,
    END,
    END,
    END.subarray(512),
    Buffer.alloc(0),
    Buffer.concat([END, entry({ path: '../x' })]),
  ])
}

/** Changes bytes of a tar; most headers get a check sum that fits again, so that what they say is believed. */
function mutate(dice: Chance, tar: Buffer): Buffer {
  const bytes = Buffer.from(tar)
  for (let left = 1 + dice.int(4); left > 0; left--) {
    const block = dice.int(bytes.length / 512) * 512
    const within = dice.of([0, 0, 100, 124, 148, 156, 157, 257, 345, 476]) + dice.int(12)
    const value = dice.of([0, 0x20, 0x2f, 0x2e, 0x30, 0x31, 0x32, 0x37, 0x78, 0x80, 0xff, dice.int(256)])
    bytes[block + within] = value
    if (dice() < 0.8) sealed(bytes, block)
  }
  if (dice() < 0.1) return bytes.subarray(0, dice.int(bytes.length))
  if (dice() < 0.1) return Buffer.concat([bytes, bytes.subarray(0, 512 * dice.int(3) + dice.int(2))])
  return bytes
}

/** Flips, cuts or appends bytes of the packed archive. */
function damage(dice: Chance, packed: Buffer): Buffer {
  const bytes = Buffer.from(packed)
  const way = dice()
  if (way < 0.3) return bytes.subarray(0, dice.int(bytes.length))
  if (way < 0.5)
    return Buffer.concat([bytes, Buffer.from(Array.from({ length: 1 + dice.int(20) }, () => dice.int(256)))])
  if (way < 0.6) return Buffer.concat([bytes, bytes])
  for (let left = 1 + dice.int(8); left > 0; left--) bytes[dice.int(bytes.length)] = dice.int(256)
  return bytes
}
