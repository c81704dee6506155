/** Where a page of a list ended: the values of the sort key of its last row. */
export type Place = readonly (string | null)[]
