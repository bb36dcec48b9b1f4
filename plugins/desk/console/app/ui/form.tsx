import type { ComponentChildren } from 'preact'
import { useEffect, useId, useRef, useState } from 'preact/hooks'
import { text } from '../text.js'
import type { FormField, Values } from './form-field.js'
import { Problem } from './parts.js'

export type { FormField, Values }

/** A form built from a description of its fields. Each submission clears secrets, even if it fails. */
export function Form({
  fields,
  label,
  submit,
  children,
  filters,
}: {
  /** A filter form does not mark its fields as optional. */
  readonly filters?: true
  readonly fields: readonly FormField[]
  readonly label: string
  readonly submit: (values: Values) => Promise<unknown>
  /** Rendered between the fields and the button. */
  readonly children?: (values: Values) => ComponentChildren
}) {
  const initial = () => Object.fromEntries(fields.map(({ name, value = '' }) => [name, value]))
  const [changed, setChanged] = useState<Record<string, string>>({})
  const [state, set] = useState<{ busy: boolean; error?: unknown }>({ busy: false })
  const alive = useRef(true)
  useEffect(
    () => () => {
      alive.current = false
    },
    [],
  )
  const values = { ...initial(), ...changed }
  const shown = fields.filter(({ applies }) => !applies || applies(values))
  const send = async () => {
    set({ busy: true })
    let error: unknown
    try {
      await submit(Object.fromEntries(shown.map(({ name }) => [name, (values[name] ?? '').trim()])))
    } catch (thrown) {
      error = thrown
    }
    if (!alive.current) return
    set({ busy: false, error })
    const secrets = fields.filter(({ kind }) => kind === 'password').map(({ name }) => name)
    setChanged(before => {
      const kept = Object.entries(before).filter(([name]) => !secrets.includes(name))
      return error === undefined ? {} : Object.fromEntries(kept)
    })
  }
  const fieldOf = (field: FormField) => (
    <Field
      key={field.name}
      field={field}
      isOptional={typeof field.optional === 'function' ? field.optional(values) : field.optional === true}
      isMarked={!filters && !field.more}
      value={values[field.name] ?? ''}
      set={value => setChanged(before => ({ ...before, [field.name]: value }))}
    />
  )
  return (
    <form
      class="form"
      autocomplete="off"
      onSubmit={event => {
        event.preventDefault()
        if (!state.busy) void send()
      }}
    >
      {shown.filter(({ more }) => !more).map(fieldOf)}
      {shown.some(({ more }) => more) && (
        <details class="more">
          <summary>{text.forms.more}</summary>
          {shown.filter(({ more }) => more).map(fieldOf)}
        </details>
      )}
      {children?.(values)}
      <div class="actions">
        <button type="submit" class={filters ? '' : 'primary'} aria-disabled={state.busy}>
          {label}
        </button>
      </div>
      <Problem error={state.error} />
    </form>
  )
}

function Field({
  field: { label, kind = 'text', options = [], hint, placeholder },
  isOptional,
  isMarked,
  value,
  set,
}: {
  readonly isMarked: boolean
  readonly isOptional: boolean
  readonly field: FormField
  readonly value: string
  readonly set: (value: string) => void
}) {
  const id = useId()
  const describes = `${id}-about`
  // A select has an option of its own for "no value".
  const isOpen = isOptional && isMarked && kind !== 'select'
  const about = [isOpen ? text.forms.optional : '', hint ?? ''].filter(Boolean).join(' ')
  const shared = {
    id,
    value,
    required: !isOptional,
    ...(placeholder && { placeholder }),
    onInput: (event: { currentTarget: { value: string } }) => set(event.currentTarget.value),
    ...(about !== '' && { 'aria-describedby': describes }),
  }
  if (kind === 'check')
    return (
      <label class="check">
        <input
          type="checkbox"
          checked={value === 'yes'}
          onChange={event => set(event.currentTarget.checked ? 'yes' : '')}
        />
        {label}
      </label>
    )
  return (
    <div class="field">
      <label for={id}>{label}</label>
      {kind === 'select' ? (
        <select {...shared} required={false}>
          {options.map(([one, name]) => (
            <option key={one} value={one}>
              {name}
            </option>
          ))}
        </select>
      ) : kind === 'area' ? (
        <textarea rows={4} {...shared} />
      ) : (
        <Input kind={kind} {...shared} />
      )}
      {about !== '' && (
        <p class="hint" id={describes}>
          {about}
        </p>
      )}
    </div>
  )
}

function Input({
  kind,
  ...rest
}: {
  readonly kind: string
  readonly id: string
  readonly required: boolean
  readonly value: string
  readonly onInput: (event: { currentTarget: { value: string } }) => void
}) {
  if (kind === 'password') return <input type="password" autocomplete="new-password" {...rest} />
  if (kind === 'datetime') return <input type="datetime-local" {...rest} />
  if (kind === 'number') return <input type="number" step="any" {...rest} />
  return <input type="text" {...rest} />
}

/** A button for an irreversible action: a second button confirms it. */
export function Confirmed({
  label,
  question,
  run,
}: {
  readonly label: string
  readonly question: string
  readonly run: () => Promise<unknown>
}) {
  const [asks, setAsks] = useState(false)
  const [error, setError] = useState<unknown>()
  const refusal = useRef<HTMLButtonElement>(null)
  const opener = useRef<HTMLButtonElement>(null)
  const wasAsked = useRef(false)
  useEffect(() => {
    if (asks) refusal.current?.focus()
    else if (wasAsked.current) opener.current?.focus()
    wasAsked.current = asks
  }, [asks])
  const confirm = async () => {
    setError(undefined)
    try {
      await run()
    } catch (thrown) {
      setError(thrown)
    }
    setAsks(false)
  }
  if (!asks)
    return (
      <>
        <button type="button" class="danger" ref={opener} onClick={() => setAsks(true)}>
          {label}
        </button>
        <Problem error={error} />
      </>
    )
  return (
    <div class="confirm" role="group" aria-label={question}>
      <p>{question}</p>
      <div class="actions">
        <button type="button" class="danger" onClick={() => void confirm()}>
          {label}
        </button>
        <button type="button" ref={refusal} onClick={() => setAsks(false)}>
          {text.forms.keep}
        </button>
      </div>
    </div>
  )
}
