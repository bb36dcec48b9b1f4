import type { ComponentChildren } from 'preact'
import { useEffect, useId, useRef, useState } from 'preact/hooks'
import { text } from '../text.js'
import { Action } from './parts.js'

/** A confirmation dialog. The browser traps the focus in the dialog and restores it afterwards. */
export function Confirm({
  title,
  confirm,
  tone = 'primary',
  run,
  close,
  children,
}: {
  readonly title: string
  readonly confirm: string
  readonly tone?: 'primary' | 'danger'
  readonly run: () => Promise<unknown>
  readonly close: () => void
  readonly children?: ComponentChildren
}) {
  const dialog = useRef<HTMLDialogElement>(null)
  const id = useId()
  useEffect(() => {
    const { current } = dialog
    current?.showModal()
    // Closed first, because removing an open dialog would lose the focus.
    return () => current?.close()
  }, [])
  return (
    <dialog ref={dialog} class="confirm" aria-labelledby={id} onClose={close}>
      <h2 id={id}>{title}</h2>
      {children}
      <div class="actions">
        <Action
          label={confirm}
          tone={tone}
          run={async () => {
            await run()
            dialog.current?.close()
          }}
        />
        <button type="button" onClick={() => dialog.current?.close()}>
          {text.confirm.cancel}
        </button>
      </div>
    </dialog>
  )
}

/** A button with a confirmation dialog. */
export function ConfirmAction({
  label,
  title,
  tone,
  run,
  children,
}: {
  readonly label: string
  readonly title: string
  readonly tone?: 'primary' | 'danger'
  readonly run: () => Promise<unknown>
  readonly children?: ComponentChildren
}) {
  const [isOpen, setOpen] = useState(false)
  return (
    <>
      <button type="button" onClick={() => setOpen(true)}>
        {label}
      </button>
      {isOpen && (
        <Confirm title={title} confirm={label} {...(tone && { tone })} run={run} close={() => setOpen(false)}>
          {children}
        </Confirm>
      )}
    </>
  )
}
