export type Values = Readonly<Record<string, string>>

/** One field of a form. A value is text; that of a checkbox is `yes` or empty. */
export interface FormField {
  readonly name: string
  readonly label: string
  readonly kind?: 'text' | 'password' | 'area' | 'number' | 'datetime' | 'check' | 'select'
  /** Values of a select with their labels. */
  readonly options?: readonly (readonly [value: string, label: string])[]
  readonly value?: string
  /** Always, or by the other values. */
  readonly optional?: true | ((values: Values) => boolean)
  readonly hint?: string
  readonly placeholder?: string
  /** The field is optional, and in a section that is closed at first. */
  readonly more?: true
  /** Whether the field applies to the other values. */
  readonly applies?: (values: Values) => boolean
}
