export type Values = Readonly<Record<string, string>>

/** A form field. Its value is text; a checkbox has `yes` or an empty text. */
export interface FormField {
  readonly name: string
  readonly label: string
  readonly kind?: 'text' | 'password' | 'area' | 'number' | 'datetime' | 'check' | 'select'
  /** Values of a select with their labels. */
  readonly options?: readonly (readonly [value: string, label: string])[]
  readonly value?: string
  /** True, or a function of the other values. */
  readonly optional?: true | ((values: Values) => boolean)
  readonly hint?: string
  readonly placeholder?: string
  /** The field is optional and belongs to the collapsed section. */
  readonly more?: true
  /** Whether the field applies to the other values. */
  readonly applies?: (values: Values) => boolean
}
