import * as v from 'valibot'
import { mapOf } from '../../../../schemas/kernel/map-of.js'
import { bounded } from '../requests/question.js'

/** Maximum fields of a form, choices of a field, and characters of an answer. */
const MAX_FIELDS = 20
const MAX_CHOICES = 50
const MAX_ANSWER = 10_000

const Text = v.fallback(v.nullish(v.string()), undefined)
const Count = v.fallback(v.nullish(v.number()), undefined)
const Choice = v.object({ const: v.string(), title: Text })
const Choices = {
  enum: v.fallback(v.nullish(v.array(v.string())), undefined),
  oneOf: v.fallback(v.nullish(v.array(Choice)), undefined),
  anyOf: v.fallback(v.nullish(v.array(Choice)), undefined),
}
const Property = v.object({
  type: Text,
  title: Text,
  description: Text,
  ...Choices,
  items: v.fallback(v.nullish(v.object(Choices)), undefined),
  minLength: Count,
  maxLength: Count,
  minimum: Count,
  maximum: Count,
  minItems: Count,
  maxItems: Count,
})

/** `elicitation/create`. A form with other than simple fields is declined. */
export const ElicitationParams = v.object({
  mode: v.fallback(v.optional(v.string()), undefined),
  message: v.string(),
  requestedSchema: v.nullish(
    v.object({
      properties: v.nullish(mapOf(v.string(), Property)),
      required: v.nullish(v.array(v.string())),
    }),
  ),
})
export type ElicitationParams = v.InferOutput<typeof ElicitationParams>

/** The answer of a person. */
export interface PersonAnswer {
  /** Indexes of choices; null: none was chosen. */
  readonly choices: readonly number[] | null
  readonly text: string
  readonly isSkipped: boolean
}

/** One field of a form. */
export interface Field {
  readonly name: string
  readonly type: 'string' | 'number' | 'integer' | 'boolean' | 'choice' | 'choices'
  /** Label for people. */
  readonly label: string
  readonly choices?: readonly { readonly value: string; readonly label: string }[]
  readonly isRequired: boolean
  /** Bounds of the number, of the text length, or of the number of choices. */
  readonly least: number
  readonly most: number
}

/** The value of a field, or the reason for which an answer is invalid. */
export type FieldValue = { readonly value: unknown } | { readonly problem: string }

/** The fields of a form in order, or the reason for which a person cannot be asked. */
export function fieldsOf({ mode = 'form', requestedSchema }: ElicitationParams): readonly Field[] | string {
  if (mode !== 'form') return `the agent uses an unsupported kind of question (${bounded(mode, 40)})`
  const required = new Set(requestedSchema?.required ?? [])
  const properties = Object.entries(requestedSchema?.properties ?? {})
  if (properties.length > MAX_FIELDS)
    return `its form has ${properties.length} fields, at most ${MAX_FIELDS} are allowed`
  const missing = [...required].find(name => !properties.some(([known]) => known === name))
  if (missing !== undefined) return `its form requires ${bounded(missing, 100)}, which it does not describe`
  const fields = properties.map(([name, property]) => fieldOf(name, property, required.has(name)))
  const strange = fields.find(field => typeof field === 'string')
  return strange === undefined ? (fields as Field[]) : strange
}

function fieldOf(name: string, property: v.InferOutput<typeof Property>, isRequired: boolean): Field | string {
  const { title, description } = property
  const label = bounded([title ?? name, description].filter(Boolean).join(': '), 1000)
  const common = { name, label, isRequired }
  if (property.type === 'array') {
    const choices = property.items && choicesOf(property.items)
    if (!choices) return `its form has a list ${bounded(name, 100)} without choices`
    const { minItems, maxItems } = property
    return { ...common, type: 'choices', choices, least: minItems ?? 0, most: maxItems ?? choices.length }
  }
  if (property.type === 'boolean') {
    const choices = [
      { value: 'true', label: 'yes' },
      { value: 'false', label: 'no' },
    ]
    return { ...common, type: 'boolean', choices, least: 1, most: 1 }
  }
  const choices = choicesOf(property)
  if (choices) return { ...common, type: 'choice', choices, least: 1, most: 1 }
  const { type = 'string', minimum, maximum, minLength, maxLength } = property
  if (type === 'number' || type === 'integer') {
    return { ...common, type, least: minimum ?? -Infinity, most: maximum ?? Infinity }
  }
  if (type !== 'string') return `its form has a field ${bounded(name, 100)} of the type ${bounded(String(type), 40)}`
  return { ...common, type, least: minLength ?? 0, most: Math.min(maxLength ?? MAX_ANSWER, MAX_ANSWER) }
}

function choicesOf(from: { [M in 'enum' | 'oneOf' | 'anyOf']?: v.InferOutput<(typeof Choices)[M]> }) {
  const titled = from.oneOf ?? from.anyOf
  const all =
    titled?.map(({ const: value, title }) => ({ value, label: title ?? value })) ??
    from.enum?.map(value => ({ value, label: value }))
  return all?.slice(0, MAX_CHOICES).map(({ value, label }) => ({ value, label: bounded(label, 400) }))
}

/** The field value of an answer; `value` is undefined for a skipped field. */
export function fieldValue(field: Field, { choices, text, isSkipped }: PersonAnswer): FieldValue {
  if (isSkipped) return field.isRequired ? { problem: 'an answer is required' } : { value: undefined }
  if (!field.choices) return typed(field, text)
  const places = choices ?? placesOf(field, text)
  if (places === undefined) {
    const labels = field.choices.map(({ label }, at) => `${at + 1} ${label}`).join(', ')
    return { problem: `choose one of: ${labels}` }
  }
  const values = [...new Set(places)].map(index => field.choices?.[index]?.value)
  if (values.includes(undefined)) return { problem: `there are ${field.choices.length} choices` }
  const [first] = values
  if (field.type === 'choices') {
    return within(field, values.length, 'choices') ?? { value: values }
  }
  if (values.length !== 1) return { problem: 'choose one' }
  return { value: field.type === 'boolean' ? first === 'true' : first }
}

function typed(field: Field, text: string): FieldValue {
  if (field.type === 'string') return within(field, text.length, 'characters') ?? { value: text }
  const value = text.trim() === '' ? Number.NaN : Number(text)
  const isFit = field.type === 'integer' ? Number.isSafeInteger(value) : Number.isFinite(value)
  if (!isFit) return { problem: field.type === 'integer' ? 'give a whole number' : 'give a number' }
  return within(field, value, '') ?? { value }
}

function within({ least, most }: Field, value: number, unit: string): FieldValue | undefined {
  if (value >= least && value <= most) return undefined
  const bounds =
    most === Infinity ? `at least ${least}` : least === -Infinity ? `at most ${most}` : `${least} to ${most}`
  return { problem: `give ${bounds}${unit && ` ${unit}`}` }
}

/** The choices named by a text, by label or value; yes and no also by their first letter. */
function placesOf({ choices = [], type }: Field, text: string): readonly number[] | undefined {
  const names = type === 'choices' ? text.split(',') : [text]
  const places = names.map(name => {
    const wanted = name.trim().toLowerCase()
    return choices.findIndex(({ value, label }) =>
      [value, label, ...(type === 'boolean' ? [label.slice(0, 1)] : [])].some(
        one => one.trim().toLowerCase() === wanted,
      ),
    )
  })
  return places.includes(-1) ? undefined : places
}
