! Point to point from Fortran with "use mpi": blocking, non-blocking and
! persistent ring messages of several types, wildcards and statuses, and a
! column and a row of a matrix as derived types. The mpi module has no interfaces
! for choice buffers, so gfortran warns of mismatched types: compile with -w.
module ring
    use mpi
    implicit none
    integer :: me, ranks, left, right, ierr, failures = 0

contains

    subroutine check(what, expected, seen)
        character(len=*), intent(in) :: what
        integer, intent(in) :: expected, seen

        if (expected == seen) return
        failures = failures + 1
        write (0, '(3a,i0,a,i0,a,i0)') 'FAIL ', what, ' rank ', me, ': expected ', expected, &
            ', saw ', seen
    end subroutine

    subroutine check_status(what, status, tag, datatype, items)
        character(len=*), intent(in) :: what
        integer, intent(in) :: status(MPI_STATUS_SIZE), tag, datatype, items
        integer :: seen

        call MPI_Get_count(status, datatype, seen, ierr)
        call check(what // ' source', left, status(MPI_SOURCE))
        call check(what // ' tag', tag, status(MPI_TAG))
        call check(what // ' count', items, seen)
    end subroutine

    ! Double precision, sizes 1 to 100000.
    subroutine test_blocking()
        double precision, allocatable :: a(:), b(:)
        integer :: status(MPI_STATUS_SIZE), n, i

        n = 1
        do while (n <= 100000)
            allocate (a(n), b(n))
            a = [(me * 0.5d0 + i, i = 1, n)]
            b = -1
            call MPI_Sendrecv(a, n, MPI_DOUBLE_PRECISION, right, 1, b, n, MPI_DOUBLE_PRECISION, &
                left, 1, MPI_COMM_WORLD, status, ierr)
            call check_status('sendrecv', status, 1, MPI_DOUBLE_PRECISION, n)
            call check('doubles', 0, count(b /= [(left * 0.5d0 + i, i = 1, n)]))
            deallocate (a, b)
            n = n * 10
        end do
    end subroutine

    ! Integers, reals, characters, logicals and complex numbers at once.
    subroutine test_nonblocking()
        integer, parameter :: n = 5000
        integer :: requests(10), statuses(MPI_STATUS_SIZE, 10), i
        integer, asynchronous :: ints(n), got_ints(n)
        real, asynchronous :: reals(n), got_reals(n)
        complex, asynchronous :: numbers(n), got_numbers(n)
        logical, asynchronous :: flags(n), got_flags(n)
        character(len=n), asynchronous :: text, got_text

        ints = [(me * 100000 + i, i = 1, n)]
        reals = real(ints)
        numbers = cmplx(reals, -reals)
        flags = mod(ints, 3) == mod(me, 3)
        text = repeat(achar(65 + mod(me, 26)), n)
        call MPI_Irecv(got_ints, n, MPI_INTEGER, left, 1, MPI_COMM_WORLD, requests(1), ierr)
        call MPI_Irecv(got_reals, n, MPI_REAL, left, 2, MPI_COMM_WORLD, requests(2), ierr)
        call MPI_Irecv(got_numbers, n, MPI_COMPLEX, left, 3, MPI_COMM_WORLD, requests(3), ierr)
        call MPI_Irecv(got_flags, n, MPI_LOGICAL, left, 4, MPI_COMM_WORLD, requests(4), ierr)
        call MPI_Irecv(got_text, n, MPI_CHARACTER, left, 5, MPI_COMM_WORLD, requests(5), ierr)
        call MPI_Isend(text, n, MPI_CHARACTER, right, 5, MPI_COMM_WORLD, requests(6), ierr)
        call MPI_Isend(flags, n, MPI_LOGICAL, right, 4, MPI_COMM_WORLD, requests(7), ierr)
        call MPI_Isend(numbers, n, MPI_COMPLEX, right, 3, MPI_COMM_WORLD, requests(8), ierr)
        call MPI_Isend(reals, n, MPI_REAL, right, 2, MPI_COMM_WORLD, requests(9), ierr)
        call MPI_Issend(ints, n, MPI_INTEGER, right, 1, MPI_COMM_WORLD, requests(10), ierr)
        call MPI_Waitall(10, requests, statuses, ierr)
        call check_status('complex', statuses(:, 3), 3, MPI_COMPLEX, n)
        call check_status('characters', statuses(:, 5), 5, MPI_CHARACTER, n)
        call check('integers', 0, count(got_ints /= [(left * 100000 + i, i = 1, n)]))
        call check('reals', 0, count(got_reals /= real(got_ints)))
        call check('complex', 0, count(got_numbers /= cmplx(got_reals, -got_reals)))
        call check('logicals', 0, count(got_flags .neqv. mod(got_ints, 3) == mod(left, 3)))
        call check('characters', 0, verify(got_text, achar(65 + mod(left, 26))))
    end subroutine

    ! The second row of a matrix arrives as the third column of another.
    subroutine test_matrix()
        integer, parameter :: n = 60
        integer :: a(n, n), b(n, n), row, i, j, status(MPI_STATUS_SIZE)

        a = reshape([((me * 10000 + i * 100 + j, i = 1, n), j = 1, n)], [n, n])
        b = -1
        call MPI_Type_vector(n, 1, n, MPI_INTEGER, row, ierr)
        call MPI_Type_commit(row, ierr)
        call MPI_Sendrecv(a(2, 1), 1, row, right, 7, b(1, 3), n, MPI_INTEGER, left, 7, &
            MPI_COMM_WORLD, status, ierr)
        call check_status('row', status, 7, MPI_INTEGER, n)
        call check('row as a column', 0, count(b(:, 3) /= [(left * 10000 + 200 + j, j = 1, n)]))
        b(:, 3) = -1
        call check('rest of the matrix', n * n, count(b == -1))
        call MPI_Sendrecv(a(1, 4), n, MPI_INTEGER, right, 8, b(5, 1), 1, row, left, 8, &
            MPI_COMM_WORLD, status, ierr)
        call check('column as a row', 0, count(b(5, :) /= [(left * 10000 + i * 100 + 4, i = 1, n)]))
        b(5, :) = -1
        call check('rest of the matrix', n * n, count(b == -1))
        call MPI_Type_free(row, ierr)
    end subroutine

    subroutine test_persistent()
        integer, parameter :: n = 3000
        integer, asynchronous :: a(n), b(n)
        integer :: requests(2), round, i

        call MPI_Send_init(a, n, MPI_INTEGER, right, 9, MPI_COMM_WORLD, requests(1), ierr)
        call MPI_Recv_init(b, n, MPI_INTEGER, left, 9, MPI_COMM_WORLD, requests(2), ierr)
        do round = 1, 5
            a = [(me * 100000 + round * 7 + i, i = 1, n)]
            b = -1
            call MPI_Startall(2, requests, ierr)
            call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE, ierr)
            call check('persistent', 0, count(b /= [(left * 100000 + round * 7 + i, i = 1, n)]))
        end do
        call MPI_Request_free(requests(1), ierr)
        call MPI_Request_free(requests(2), ierr)
    end subroutine

    ! Rank 0 gets one integer of everybody, itself too, after a probe.
    subroutine test_wildcard()
        integer :: status(MPI_STATUS_SIZE), request, value, i, total
        integer, asynchronous :: mine

        mine = 3 * me + 1
        call MPI_Isend(mine, 1, MPI_INTEGER, 0, 20 + me, MPI_COMM_WORLD, request, ierr)
        total = 0
        if (me == 0) then
            do i = 1, ranks
                call MPI_Probe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, status, ierr)
                call MPI_Recv(value, 1, MPI_INTEGER, status(MPI_SOURCE), status(MPI_TAG), &
                    MPI_COMM_WORLD, status, ierr)
                call check('tag', 20 + status(MPI_SOURCE), status(MPI_TAG))
                call check('value', 3 * status(MPI_SOURCE) + 1, value)
                total = total + value
            end do
            call check('total', ranks + 3 * ranks * (ranks - 1) / 2, total)
        end if
        call MPI_Wait(request, MPI_STATUS_IGNORE, ierr)
    end subroutine
end module

program fortran_p2p
    use ring
    implicit none
    integer :: all

    call MPI_Init(ierr)
    call MPI_Comm_rank(MPI_COMM_WORLD, me, ierr)
    call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierr)
    left = mod(me + ranks - 1, ranks)
    right = mod(me + 1, ranks)
    call test_blocking()
    call test_nonblocking()
    call test_matrix()
    call test_persistent()
    call test_wildcard()
    call MPI_Allreduce(failures, all, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, ierr)
    if (me == 0 .and. all == 0) print '(a)', 'ok fortran_p2p'
    ! See finalize_after_pause() in check.h.
    call execute_command_line('sleep 0.2')
    call MPI_Finalize(ierr)
    if (all /= 0) stop 1
end program
