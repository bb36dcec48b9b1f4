import type { PlanEntry } from '@agentclientprotocol/sdk/unstable'
import { clip } from '../text.js'
import { Refused } from '../workspace/paths.js'
import { object, type Tool, text } from './tool.js'

const MAX_ENTRIES = 50
const MAX_TEXT = 500
const STATES = ['pending', 'in_progress', 'completed'] as const

/** `plan`: shows the person the steps of longer work. */
export const plan: Tool = {
  name: 'plan',
  description: 'Show the steps of a longer task and their progress. Each call replaces the plan before.',
  kind: 'think',
  parameters: object(
    {
      entries: {
        type: 'array',
        maxItems: MAX_ENTRIES,
        items: object({ content: text('one step'), status: { type: 'string', enum: STATES } }, ['content', 'status']),
      },
    },
    ['entries'],
  ),
  title: () => 'Plan',
  async run({ entries }, context) {
    if (!Array.isArray(entries) || entries.length === 0 || entries.length > MAX_ENTRIES) {
      throw new Refused(`entries has to be a list of 1 to ${MAX_ENTRIES} steps`)
    }
    await context.plan(entries.map(entryOf))
    return { text: `the plan has ${entries.length} steps` }
  },
}

function entryOf(entry: unknown): PlanEntry {
  const { content, status } = (entry ?? {}) as { content?: unknown; status?: unknown }
  const state = STATES.find(one => one === status)
  if (typeof content !== 'string' || content.trim() === '' || !state) {
    throw new Refused(`each entry has content, a text, and status: ${STATES.join(', ')}`)
  }
  return { content: clip(content, MAX_TEXT), priority: 'medium', status: state }
}
