import { defineErrors } from '../../../kernel/plugin.js'

/** Errors of opening or sending a stream. */
export const StreamErrors = defineErrors({
  slow_consumer: { status: 408, message: 'messages were not read in time; open the channel again' },
  too_many_streams: {
    status: 429,
    message:
      'the maximum number of open streams is reached (http.max_streams and the limit of open files); close some, or raise it',
  },
  frame_too_large: { status: 500, message: 'a frame of the stream is too large' },
})
