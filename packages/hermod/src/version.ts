/** The version of this library, as workers report it. */
export const version = '0.1.0'
