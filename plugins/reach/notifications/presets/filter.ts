import { shown } from '../../../../kernel/kit/text.js'

/** Severities of events, in ascending order. */
export const SEVERITIES = ['info', 'warning', 'error', 'critical'] as const
export type Severity = (typeof SEVERITIES)[number]

/** Fields of an event that a filter can use. */
export const FILTER_FIELDS = ['severity', 'workspace', 'agent', 'event_type', 'provider', 'task', 'run'] as const
export type FilterField = (typeof FILTER_FIELDS)[number]

/** Fields of one event. A field with several values, such as the id and name of a workspace, matches by each. */
export type FilterFacts = { readonly [F in FilterField]?: string | readonly string[] | undefined }

export type Comparison = '=' | '!=' | '>=' | '>' | '<=' | '<'

/** A parsed filter: a comparison, or a conjunction or disjunction of filters. */
export type Filter =
  | { readonly of: 'all'; readonly parts: readonly Filter[] }
  | { readonly of: 'any'; readonly parts: readonly Filter[] }
  | {
      readonly of: 'comparison'
      readonly field: FilterField
      readonly operator: Comparison
      readonly value: string
    }

/** A syntax error in a filter. */
export interface FilterProblem {
  readonly problem: string
  /** Position of the character, from 1. */
  readonly position: number
}

/** Maximum characters, comparisons and nesting of a filter. */
export const FILTER_LIMITS = { characters: 4096, comparisons: 100, depth: 20 } as const

/** The empty filter, which matches every event. */
const EVERYTHING: Filter = { of: 'all', parts: [] }

interface Word {
  readonly kind: 'word' | 'text' | 'operator' | '(' | ')' | 'end'
  readonly text: string
  /** From 0. */
  readonly at: number
}

const WORD = /[A-Za-z0-9_.:@/+~#*-]+/y
const OPERATOR = /!=|>=|<=|=|>|</y

class Problem extends Error {
  constructor(
    message: string,
    readonly at: number,
  ) {
    super(message)
  }
}

/**
 * Parses a filter: `severity >= error AND (workspace = docs OR agent != "code reviewer")`. AND binds more tightly than
 * OR. An empty text matches every event. Time and memory are linear in the length, which is limited.
 */
export function parseFilter(text: string): Filter | FilterProblem {
  try {
    if (text.length > FILTER_LIMITS.characters)
      throw new Problem(`a filter has at most ${FILTER_LIMITS.characters} characters`, FILTER_LIMITS.characters)
    return new Reader(wordsOf(text)).whole()
  } catch (error) {
    if (error instanceof Problem) return { problem: error.message, position: error.at + 1 }
    throw error
  }
}

export const isProblem = (read: Filter | FilterProblem): read is FilterProblem => 'problem' in read

/** Whether a filter matches an event. A missing field equals nothing. */
export function matches(filter: Filter, facts: FilterFacts): boolean {
  if (filter.of === 'all') return filter.parts.every(part => matches(part, facts))
  if (filter.of === 'any') return filter.parts.some(part => matches(part, facts))
  const { field, operator, value } = filter
  const fact = facts[field]
  const values = fact === undefined ? [] : typeof fact === 'string' ? [fact] : fact
  if (operator === '=') return values.includes(value)
  if (operator === '!=') return !values.includes(value)
  const difference = rankOf(values[0]) - rankOf(value)
  if (operator === '>') return difference > 0
  if (operator === '>=') return difference >= 0
  return operator === '<' ? difference < 0 : difference <= 0
}

/** NaN for an unknown severity: comparisons with it are always false. */
const rankOf = (severity: string | undefined) => {
  const rank = (SEVERITIES as readonly (string | undefined)[]).indexOf(severity)
  return rank < 0 ? Number.NaN : rank
}

function wordsOf(text: string): Word[] {
  const words: Word[] = []
  for (let at = 0; at < text.length; ) {
    const character = text[at] as string
    if (/\s/.test(character)) {
      at++
      continue
    }
    const word = wordAt(text, at, character)
    words.push(word.word)
    at = word.end
  }
  return [...words, { kind: 'end', text: '', at: text.length }]
}

function wordAt(text: string, at: number, character: string): { readonly word: Word; readonly end: number } {
  if (character === '(' || character === ')') return { word: { kind: character, text: character, at }, end: at + 1 }
  if (character === '"') return quotedAt(text, at)
  for (const [kind, pattern] of [
    ['operator', OPERATOR],
    ['word', WORD],
  ] as const) {
    pattern.lastIndex = at
    const found = pattern.exec(text)?.[0]
    if (found !== undefined) return { word: { kind, text: found, at }, end: at + found.length }
  }
  throw new Problem(`${shown(character)} has no meaning here; put values with such characters in quotes`, at)
}

/** A quoted value with the escapes `\"` and `\\`. */
function quotedAt(text: string, at: number): { readonly word: Word; readonly end: number } {
  let value = ''
  for (let next = at + 1; next < text.length; next++) {
    const character = text[next] as string
    if (character === '"') return { word: { kind: 'text', text: value, at }, end: next + 1 }
    const isEscape = character === '\\' && (text[next + 1] === '"' || text[next + 1] === '\\')
    if (isEscape) next++
    value += text[next]
  }
  throw new Problem('the quote is not closed', at)
}

/** A recursive descent parser; each method reads one rule of the grammar. */
class Reader {
  #next = 0
  #comparisons = 0
  #depth = 0

  constructor(private readonly words: readonly Word[]) {}

  whole(): Filter {
    if (this.#word().kind === 'end') return EVERYTHING
    const filter = this.#either()
    if (this.#word().kind !== 'end') throw this.#unexpected('AND, OR or the end')
    return filter
  }

  #either(): Filter {
    const parts = [this.#both()]
    while (this.#takes('OR')) parts.push(this.#both())
    return parts.length === 1 ? (parts[0] as Filter) : { of: 'any', parts }
  }

  #both(): Filter {
    const parts = [this.#one()]
    while (this.#takes('AND')) parts.push(this.#one())
    return parts.length === 1 ? (parts[0] as Filter) : { of: 'all', parts }
  }

  #one(): Filter {
    if (this.#word().kind !== '(') return this.#comparison()
    const opened = this.#take()
    if (++this.#depth > FILTER_LIMITS.depth)
      throw new Problem(`parentheses are nested more than ${FILTER_LIMITS.depth} levels deep`, opened.at)
    const filter = this.#either()
    if (this.#word().kind !== ')') throw this.#unexpected(`the ) of the ( at ${opened.at + 1}`)
    this.#take()
    this.#depth--
    return filter
  }

  #comparison(): Filter {
    const { kind, text, at } = this.#word()
    if (kind !== 'word') throw this.#unexpected('a field or (')
    const field = FILTER_FIELDS.find(name => name === text)
    if (!field) throw new Problem(`${shown(text)} is not a field; the fields are ${FILTER_FIELDS.join(', ')}`, at)
    if (++this.#comparisons > FILTER_LIMITS.comparisons)
      throw new Problem(`a filter has at most ${FILTER_LIMITS.comparisons} comparisons`, at)
    this.#take()
    if (this.#word().kind !== 'operator') throw this.#unexpected('one of = != >= > <= <')
    const operator = this.#take()
    if (this.#word().kind !== 'word' && this.#word().kind !== 'text') throw this.#unexpected('a value')
    const value = this.#take()
    if (field === 'severity' && Number.isNaN(rankOf(value.text)))
      throw new Problem(
        `${shown(value.text)} is not a severity; the severities are ${SEVERITIES.join(' < ')}`,
        value.at,
      )
    if (field !== 'severity' && !/^!?=$/.test(operator.text))
      throw new Problem(`only severity has an order; compare ${field} by = or !=`, operator.at)
    return { of: 'comparison', field, operator: operator.text as Comparison, value: value.text }
  }

  #word(): Word {
    return this.words[this.#next] as Word
  }

  #take(): Word {
    const word = this.#word()
    this.#next++
    return word
  }

  #takes(keyword: 'AND' | 'OR'): boolean {
    const { kind, text } = this.#word()
    if (kind !== 'word' || text.toUpperCase() !== keyword) return false
    this.#next++
    return true
  }

  #unexpected(wanted: string): Problem {
    const { kind, text, at } = this.#word()
    return new Problem(`${kind === 'end' ? 'the filter ends' : `there is ${shown(text)}`} where ${wanted} belongs`, at)
  }
}
