import { column, table } from '../../../kernel/kit/table.js'
import type { Provenance } from './provenance.js'

const { json, text } = column

/**
 * A decided change of an extension's folder, written before anything there is touched. Every start rolls it forward
 * until it is settled; its staged files are in `.staging/<id>`.
 */
export type Intent =
  | {
      readonly op: 'place'
      readonly id: string
      readonly name: string
      /** Provenance of the staged files. */
      readonly provenance: Provenance
      /** Whether the existing folder of that name is an earlier version: an update. */
      readonly replaces: boolean
      /** Whether the earlier version ran; absent: unknown. */
      readonly ran?: boolean
    }
  | {
      readonly op: 'remove'
      readonly id: string
      readonly name: string
      readonly purge: boolean
      /** Kinds of its records, as far as its code is known; absent in intents of earlier versions. */
      readonly kinds?: readonly string[]
    }

/** State of an intent's files on the disk. */
export interface Sight {
  /** The staged files exist. They were complete before the intent was written. */
  readonly fresh: boolean
  /** The folder of the extension's name exists. */
  readonly target: boolean
  /** The previous folder was moved aside. */
  readonly aside: boolean
  /** The new files were in place and did not start. */
  readonly refused: boolean
}

/** Progress of an intent. It is derived from the disk and never stored, so the two cannot differ. */
export type Phase = 'occupied' | 'vacant' | 'placed' | 'refused' | 'done' | 'superseded'

/** The step of each phase, and the phase that follows. */
export const transitions = {
  /** The old folder exists: one rename moves it aside. */
  occupied: { step: 'moveAside', next: { place: 'vacant', remove: 'done' } },
  /** The name is free: one rename moves the new files in. */
  vacant: { step: 'moveIn', next: { place: 'placed', remove: undefined } },
  /**
   * The new files are in place: they are loaded, and the tables follow; an update that does not start is taken out
   * again.
   */
  placed: { step: 'tryOut', next: { place: undefined, remove: undefined } },
  /** The new files did not start: one rename moves the old ones back. */
  refused: { step: 'moveBack', next: { place: 'superseded', remove: undefined } },
  /** The disk matches the decision: the tables follow in one transaction, which also deletes the intent. */
  done: { step: 'settle', next: { place: undefined, remove: undefined } },
  /** A person changed the folders by hand in between: their state stays, and the intent is dropped. */
  superseded: { step: 'drop', next: { place: undefined, remove: undefined } },
} as const satisfies Record<Phase, { step: string; next: Record<Intent['op'], Phase | undefined> }>

export function phaseOf(intent: Intent, { fresh, target, aside, refused }: Sight): Phase {
  if (intent.op === 'remove') return target && !aside ? 'occupied' : 'done'
  if (refused) return aside && !target ? 'refused' : 'superseded'
  if (!fresh) return target ? 'placed' : 'superseded'
  if (!target) return 'vacant'
  return intent.replaces && !aside ? 'occupied' : 'superseded'
}

/** Unsettled intents, at most one per name. */
export const intents = table('extensions_intent', { name: text(), id: text(), intent: json<Intent>() })
