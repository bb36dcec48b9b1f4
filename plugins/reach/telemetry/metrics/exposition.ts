import { clip } from '../../../../kernel/kit/text.js'
import type { Distribution, Labels, MetricDeclaration, Sample } from '../api.js'

/** A metric with its values. */
export interface Family extends MetricDeclaration {
  readonly samples: readonly (Sample | Distribution)[]
}

/** The supported text formats. */
export type Exposition = 'openmetrics' | 'prometheus'

export const CONTENT_TYPES: Readonly<Record<Exposition, string>> = {
  openmetrics: 'application/openmetrics-text; version=1.0.0; charset=utf-8',
  prometheus: 'text/plain; version=0.0.4; charset=utf-8',
}

/** The format for an `Accept` header: OpenMetrics unless plain text is preferred. */
export function expositionFor(accept: string | undefined): Exposition {
  let [open, plain] = [-1, -1]
  for (const part of clip(accept ?? '', 2048).split(',')) {
    const [type = '', ...parameters] = part.split(';').map(text => text.trim().toLowerCase())
    const weight = parameters.find(text => text.startsWith('q='))
    const q = weight === undefined ? 1 : Number(weight.slice(2))
    if (!(q > 0)) continue
    // Version 0.0.1 and its draft have the same text; clients of a later version would accept this one too.
    if (type === 'application/openmetrics-text') open = Math.max(open, q)
    if (type === 'text/plain' || type === 'text/*') plain = Math.max(plain, q)
  }
  return plain > open ? 'prometheus' : 'openmetrics'
}

/** The text of all metrics. */
export function exposed(families: readonly Family[], as: Exposition): string {
  const lines = families.flatMap(family => [...familyLines(family, as)])
  if (as === 'openmetrics') lines.push('# EOF')
  return `${lines.join('\n')}\n`
}

function* familyLines({ name, type, help, bounds = [], samples }: Family, as: Exposition): Generator<string> {
  const suffix = { counter: '_total', info: '_info', gauge: '', histogram: '' }[type]
  const series = name + suffix
  const isOpen = as === 'openmetrics'
  const head = isOpen ? name : series
  yield `# HELP ${head} ${escaped(help, isOpen)}`
  yield `# TYPE ${head} ${!isOpen && type === 'info' ? 'gauge' : type}`
  for (const sample of samples) {
    if (!('counts' in sample)) {
      yield `${series}${labelText(sample.labels)} ${numberText(type === 'info' ? 1 : sample.value)}`
      continue
    }
    let count = 0
    for (const [n, bound] of [...bounds, Number.POSITIVE_INFINITY].entries()) {
      count += sample.counts[n] ?? 0
      yield `${name}_bucket${labelText(sample.labels, floatText(bound))} ${count}`
    }
    yield `${name}_count${labelText(sample.labels)} ${count}`
    yield `${name}_sum${labelText(sample.labels)} ${numberText(sample.sum)}`
  }
}

function labelText(labels: Labels = {}, le?: string): string {
  const pairs = Object.entries(labels).map(([name, value]) => `${name}="${escaped(value, true)}"`)
  if (le !== undefined) pairs.push(`le="${le}"`)
  return pairs.length > 0 ? `{${pairs.join(',')}}` : ''
}

const ESCAPES: Readonly<Record<string, string>> = { '\\': '\\\\', '\n': '\\n', '"': '\\"' }

/** The plain text format does not escape quotes in help texts. */
const escaped = (text: string, quotes: boolean) =>
  text.replace(quotes ? /[\\\n"]/g : /[\\\n]/g, found => ESCAPES[found] ?? found)

const numberText = (value: number) =>
  Number.isFinite(value) ? String(value) : Number.isNaN(value) ? 'NaN' : value > 0 ? '+Inf' : '-Inf'

/** Bounds are formatted as floats, so that all programs write them the same way. */
const floatText = (bound: number) => (Number.isInteger(bound) ? `${bound}.0` : numberText(bound))
