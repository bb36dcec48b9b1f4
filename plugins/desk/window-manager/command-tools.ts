import * as v from 'valibot'
import { tool } from '../../../kernel/kit/annotations/index.js'
import { commandTable } from './reduce/command-table.js'

/** One tool per command, such as `window_open` for `window.open`, with the payload of the command. */
export const commandTools = Object.entries(commandTable).map(([id, { summary, payload }]) =>
  tool(id.replace('.', '_'), ['window_manager'], {
    description: `${summary}. expected_revision is the revision of window_manager_state.`,
    fixed: { command_id: id },
    input: v.strictObject({
      expected_revision: v.pipe(v.number(), v.integer()),
      client_id: v.optional(v.string()),
      command_id: v.literal(id),
      payload: payload as v.GenericSchema,
    }),
  }),
)
