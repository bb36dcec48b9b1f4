import type { Db, Tx } from '../../../../kernel/plugin.js'
import type { Provenance } from './provenance.js'

/**
 * Something decided that changes the folder of an extension, written before anything there is touched. Until it is settled,
 * every start carries it on; with it come its staged files, below `.staging/<id>`.
 */
export type Intent =
  | {
      readonly op: 'place'
      readonly id: string
      readonly name: string
      /** Of the staged files. */
      readonly provenance: Provenance
      /** What is there by the name is an earlier one of them: an update. */
      readonly replaces: boolean
      /** The earlier one ran; absent: nobody knows. */
      readonly ran?: boolean
    }
  | {
      readonly op: 'remove'
      readonly id: string
      readonly name: string
      readonly purge: boolean
      /** Kinds of its records, as far as its code is known; absent in those of earlier versions. */
      readonly kinds?: readonly string[]
    }

/** What stands on the disk of an intent. */
export interface Sight {
  /** The staged files, complete since before the intent was written. */
  readonly fresh: boolean
  /** Something by the extension's name. */
  readonly target: boolean
  /** What was by that name, put aside. */
  readonly aside: boolean
  /** Files that were in place and did not start. */
  readonly refused: boolean
}

/** How far an intent is. It is read off the disk and never written: so the two cannot differ. */
export type Phase = 'occupied' | 'vacant' | 'placed' | 'refused' | 'done' | 'superseded'

/** What each phase does, and which one follows. */
export const transitions = {
  /** The old files are in the way: one rename puts them aside. */
  occupied: { step: 'moveAside', next: { place: 'vacant', remove: 'done' } },
  /** Nothing is in the way: one rename puts the new files in place. */
  vacant: { step: 'moveIn', next: { place: 'placed', remove: undefined } },
  /** The new files are in place: they are loaded and the tables follow; those of an update that do not start are taken out again. */
  placed: { step: 'tryOut', next: { place: undefined, remove: undefined } },
  /** The new files did not start: one rename puts the old ones back. */
  refused: { step: 'moveBack', next: { place: 'superseded', remove: undefined } },
  /** The disk is as decided: tables follow in one transaction, and the intent is gone. */
  done: { step: 'settle', next: { place: undefined, remove: undefined } },
  /** Somebody changed the folders by hand meanwhile: what they did stays, the intent is dropped. */
  superseded: { step: 'drop', next: { place: undefined, remove: undefined } },
} as const satisfies Record<Phase, { step: string; next: Record<Intent['op'], Phase | undefined> }>

export function phaseOf(intent: Intent, { fresh, target, aside, refused }: Sight): Phase {
  if (intent.op === 'remove') return target && !aside ? 'occupied' : 'done'
  if (refused) return aside && !target ? 'refused' : 'superseded'
  if (!fresh) return target ? 'placed' : 'superseded'
  if (!target) return 'vacant'
  return intent.replaces && !aside ? 'occupied' : 'superseded'
}

/** The intents that are not settled, at most one a name. */
export class IntentTable {
  constructor(private readonly db: Db) {}

  get(name: string): Intent | undefined {
    const row = this.db.get<{ intent: string }>('SELECT intent FROM extensions_intent WHERE name = ?', [name])
    return row && (JSON.parse(row.intent) as Intent)
  }

  list(): Intent[] {
    return this.db
      .all<{ intent: string }>('SELECT intent FROM extensions_intent ORDER BY name')
      .map(row => JSON.parse(row.intent) as Intent)
  }

  put(t: Tx, intent: Intent): void {
    t.run('INSERT INTO extensions_intent (name, id, intent) VALUES (?, ?, ?)', [
      intent.name,
      intent.id,
      JSON.stringify(intent),
    ])
  }

  delete(t: Tx, { name }: Intent): void {
    t.run('DELETE FROM extensions_intent WHERE name = ?', [name])
  }
}
