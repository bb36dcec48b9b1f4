/** What a monitoring system reads: a strict reader of both texts, by their grammars. */
export interface ReadFamily {
  readonly type: string
  readonly help: string
  /** Values by the name of the sample and its labels as they stand there: `a_total{b="c"}`. */
  readonly samples: ReadonlyMap<string, number>
}

const SAMPLE =
  /^([a-zA-Z_:][a-zA-Z0-9_:]*)(\{(?:[a-zA-Z_]\w*="(?:[^"\\\n]|\\[\\n"])*"(?:,(?=[a-zA-Z_])|(?=\})))+\})? (NaN|[+-]Inf|-?\d+(?:\.\d+)?(?:e[+-]?\d+)?)$/
const SUFFIXES: Readonly<Record<string, readonly string[]>> = {
  counter: ['_total'],
  gauge: [''],
  info: ['_info'],
  histogram: ['_bucket', '_count', '_sum'],
}

/** Families by name. Throws at the first line that is not of the grammar, out of order, or there twice. */
export function read(text: string, as: 'openmetrics' | 'prometheus'): Map<string, ReadFamily> {
  const families = new Map<string, ReadFamily>()
  if (!text.endsWith('\n')) throw new Error('the last line has no end')
  const lines = text.slice(0, -1).split('\n')
  if (as === 'openmetrics' && lines.pop() !== '# EOF') throw new Error('there is no # EOF')
  let help: readonly [name: string, text: string] = ['', '']
  let family: { name: string; type: string; samples: Map<string, number> } | undefined
  for (const line of lines) {
    const [, verb, name = '', rest = ''] = /^# (HELP|TYPE) ([a-zA-Z_:][\w:]*) (.+)$/.exec(line) ?? []
    if (verb === 'HELP') help = [name, rest]
    else if (verb === 'TYPE') {
      if (help[0] !== name) throw new Error(`${name} has no help before its type`)
      if (families.has(name)) throw new Error(`${name} is there twice`)
      family = { name, type: rest, samples: new Map() }
      families.set(name, { type: rest, help: help[1], samples: family.samples })
    } else addSample(line, family, as)
  }
  for (const [name, { type, samples }] of families) if (type === 'histogram') judgeHistogram(name, samples)
  return families
}

function addSample(
  line: string,
  family: { name: string; type: string; samples: Map<string, number> } | undefined,
  as: string,
): void {
  const [, name = '', labels = '', value = ''] = SAMPLE.exec(line) ?? []
  if (name === '') throw new Error(`no line of a metric: ${line}`)
  if (!family) throw new Error(`no family before ${line}`)
  const suffixes = as === 'prometheus' && family.type !== 'histogram' ? [''] : SUFFIXES[family.type]
  if (!suffixes) throw new Error(`no type ${family.type}`)
  if (!suffixes.some(suffix => name === family.name + suffix)) throw new Error(`${name} is not of ${family.name}`)
  if (family.samples.has(name + labels)) throw new Error(`${name}${labels} is there twice`)
  family.samples.set(name + labels, Number(value.replace('Inf', 'Infinity')))
}

/** Buckets are cumulative, the last is infinite and has all. */
function judgeHistogram(name: string, samples: ReadonlyMap<string, number>): void {
  const series = new Map<string, { bound: number; count: number }[]>()
  for (const [key, count] of samples) {
    const [, labels = '', bound] = new RegExp(`^${name}_bucket\\{(.*?),?le="([^"]+)"\\}$`).exec(key) ?? []
    if (bound === undefined) continue
    series.set(labels, [...(series.get(labels) ?? []), { bound: Number(bound.replace('Inf', 'Infinity')), count }])
  }
  for (const [labels, buckets] of series) {
    const braces = labels === '' ? '' : `{${labels}}`
    buckets.forEach(({ bound, count }, n) => {
      const before = buckets[n - 1]
      if (before && (before.bound >= bound || before.count > count)) throw new Error(`${name} has buckets out of order`)
    })
    const last = buckets.at(-1)
    if (last?.bound !== Number.POSITIVE_INFINITY) throw new Error(`${name} ends without +Inf`)
    if (samples.get(`${name}_count${braces}`) !== last.count) throw new Error(`${name}_count is not its last bucket`)
    if (!samples.has(`${name}_sum${braces}`)) throw new Error(`${name} has no sum`)
  }
}

/** Sum of the samples whose labels have all of these. */
export function sumOf(family: ReadFamily | undefined, ...parts: readonly string[]): number {
  return [...(family?.samples ?? [])].reduce(
    (sum, [key, value]) => (parts.every(part => key.includes(part)) ? sum + value : sum),
    0,
  )
}
