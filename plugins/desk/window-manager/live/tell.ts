import { type Actor, iso, type Tx } from '../../../../kernel/plugin.js'
import type { WindowStreamEvent } from '../../../../schemas/window-manager.js'
import type { EventsApi } from '../../../platform/events/api.js'
import { CommandApplied, happeningEvents, LayoutApplied } from '../api.js'
import { type HappeningName, happenings } from '../document/changes.js'
import type { WindowDocument } from '../document/document.js'
import type { WrittenDocument } from '../store.js'

/** Members of a stream event that do not follow from the document. */
type ChangeDetails = Pick<WindowStreamEvent, 'actor' | 'changes' | 'command_id' | 'origin'>

/** Writes the events of a command: first the changes by name, then the command itself for the stream. */
export function tell(
  events: EventsApi,
  t: Tx,
  actor: Actor,
  before: WindowDocument,
  { document, revision, updatedAt }: WrittenDocument,
  command: ChangeDetails,
): void {
  const { workspace_id } = document
  const { command_id } = command
  const options = { actor, scope: workspace_id, subject: workspace_id }
  const happened = happenings(before, document)
  for (const name of Object.keys(happened) as HappeningName[]) {
    const ids = [...happened[name]]
    if (ids.length > 0) events.emit(t, happeningEvents[name], { workspace_id, revision, command_id, ids }, options)
  }
  if (command_id === 'layout.replace') {
    const ids = document.desktops.map(({ id }) => id)
    events.emit(t, LayoutApplied, { workspace_id, revision, command_id, ids }, options)
  }
  events.emit(t, CommandApplied, { ...command, occurred_at: iso(updatedAt), revision, workspace_id }, options)
}
